// The lanes' counters in Prometheus' text form, for its text-file collector.
//
//   Source  "Exposition formats", version 0.0.4, prometheus.io
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"

namespace sluice::detail {

std::string to_prometheus(std::span<const LaneCounters> lanes, Rank world_rank);

}  // namespace sluice::detail
