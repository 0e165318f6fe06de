#include "comm/bootstrap/flood_log.h"

#include <utility>

namespace sluice {

bool FloodLog::add(Rank origin, std::uint64_t sequence, SharedBytes frame) {
  std::uint64_t& highest = highest_[static_cast<std::size_t>(origin)];
  if (sequence <= highest) return false;
  highest = sequence;
  bytes_ += frame->size();
  frames_.push_back(std::move(frame));
  while (bytes_ > bytes_max_) {
    bytes_ -= frames_.front()->size();
    frames_.pop_front();
  }
  return true;
}

}  // namespace sluice
