#include "comm/trace/recorder.h"

#include <algorithm>

namespace sluice::detail {

std::vector<TraceEvent> Recorder::events() const {
  std::vector<TraceEvent> kept;
  const std::uint64_t count = std::min<std::uint64_t>(next_, kEvents);
  kept.reserve(count);
  for (std::uint64_t i = next_ - count; i < next_; ++i) kept.push_back(events_[i % kEvents]);
  return kept;
}

}  // namespace sluice::detail
