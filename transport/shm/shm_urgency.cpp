// What the ranks of a host show each other of their urgency: a count of changes, and below it the lane, from 1; 0: none.
#include "transport/shm/shm_link.h"

namespace sluice {
namespace {

constexpr std::uint32_t kLaneBits = 8;
constexpr std::uint32_t kLaneMask = (1U << kLaneBits) - 1;

}  // namespace

void ShmTransport::show_urgency(std::optional<std::uint8_t> lane) {
  std::atomic<std::uint32_t>& mine = arena_->head().urgency;
  const std::uint32_t changes = (mine.load(std::memory_order_relaxed) >> kLaneBits) + 1;
  mine.store((changes << kLaneBits) | (lane ? *lane + 1U : 0U), std::memory_order_relaxed);
}

std::uint64_t ShmTransport::urgency_elsewhere(std::uint8_t lane) const {
  std::uint64_t all = 0;
  for (const auto& link : links_) {
    if (link == nullptr || link->arena == nullptr || link->peer == rank_) continue;
    const std::uint32_t shown = link->arena->head().urgency.load(std::memory_order_relaxed);
    if ((shown & kLaneMask) != 0 && (shown & kLaneMask) - 1 < lane) all += shown;
  }
  return all;
}

}  // namespace sluice
