// The clocks of several hosts, made one: from operations in which nobody ends before everybody has come.
//
//   Method  such an operation ended at A after it was posted at B, and the other way round; with many of them the two bounds on the
//           difference of the clocks come close (the way of causal bounds: Duda, Harrus, Haddad, Bernard, "Estimating Global Time
//           in Distributed Systems", 1987).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/trace/rank_trace.h"

namespace sluice::tools {

struct ClockOfHost {
  std::string host = {};
  std::int64_t ahead_ns = 0;               // of the first host's clock; what was taken off
  std::optional<std::int64_t> doubt_ns{};  // at most so far off; nullopt: no operation says anything
};

// Shifts the times of all hosts but the first rank's. Clocks that may agree are left alone. One for each host, that of the first rank first.
std::vector<ClockOfHost> align_clocks(std::vector<RankTrace>& traces);

}  // namespace sluice::tools
