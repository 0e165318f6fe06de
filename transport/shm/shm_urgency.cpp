// How a rank's urgency lies in its arena: the lane of any operation in the lowest byte and of those that leave the host in the next,
// from 1, 0: none; above them how often each lane began, but for the least urgent.
#include "transport/shm/shm_link.h"

namespace sluice {
namespace {

constexpr unsigned kLaneBits = 8;
constexpr unsigned kCountBits = 16;
constexpr std::uint64_t kLaneMask = (1U << kLaneBits) - 1;
constexpr std::uint64_t kCountMask = (1U << kCountBits) - 1;

constexpr unsigned count_at(std::size_t lane) { return 2 * kLaneBits + static_cast<unsigned>(lane) * kCountBits; }
constexpr std::uint64_t code_of(std::optional<std::uint8_t> lane) { return lane ? *lane + 1U : 0U; }
constexpr std::uint8_t bit_of(std::uint64_t code) {
  return code == 0 || code > kLanes ? std::uint8_t{0} : UrgencyElsewhere::bit(code - 1);
}

}  // namespace

void ShmTransport::show_urgency(const ShownUrgency& shown) {
  std::atomic<std::uint64_t>& mine = arena_->head().urgency;
  const std::uint64_t before = mine.load(std::memory_order_relaxed);
  std::uint64_t counts = before & ~((std::uint64_t{1} << count_at(0)) - 1);
  const auto count = [&](std::optional<std::uint8_t> lane, std::uint64_t code_before) {
    if (!lane || *lane + 1 >= kLanes || code_before == code_of(lane)) return;
    const std::uint64_t one = (counts >> count_at(*lane)) + 1;
    counts = (counts & ~(kCountMask << count_at(*lane))) | ((one & kCountMask) << count_at(*lane));
  };
  count(shown.any, before & kLaneMask);
  count(shown.network, (before >> kLaneBits) & kLaneMask);
  mine.store(counts | code_of(shown.network) << kLaneBits | code_of(shown.any), std::memory_order_relaxed);
}

UrgencyElsewhere ShmTransport::urgency_elsewhere() const {
  UrgencyElsewhere all;
  for (const Link* link : neighbours_) {
    if (link->lost || link->arena == nullptr) continue;
    const std::uint64_t word = link->arena->head().urgency.load(std::memory_order_relaxed);
    all.any |= bit_of(word & kLaneMask);
    all.network |= bit_of((word >> kLaneBits) & kLaneMask);
    for (std::size_t lane = 0; lane + 1 < kLanes; ++lane)
      all.begins[lane] += static_cast<std::uint32_t>((word >> count_at(lane)) & kCountMask);
  }
  return all;
}

}  // namespace sluice
