// What the ranks of a host show each other of their urgency.
#include "transport/shm/shm_link.h"

namespace sluice {

void ShmTransport::show_urgency(std::optional<std::uint8_t> lane) {
  arena_->head().urgency.store(lane ? static_cast<std::uint8_t>(*lane + 1) : 0, std::memory_order_relaxed);
}

bool ShmTransport::more_urgent_elsewhere(std::uint8_t lane) const {
  for (const auto& link : links_) {
    if (link == nullptr || link->arena == nullptr || link->peer == rank_) continue;
    const std::uint8_t shown = link->arena->head().urgency.load(std::memory_order_relaxed);
    if (shown != 0 && shown - 1 < lane) return true;
  }
  return false;
}

}  // namespace sluice
