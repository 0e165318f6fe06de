// Traces of all ranks as pictures over time.
#pragma once

#include <string>
#include <vector>

#include "tools/trace/rank_trace.h"

namespace sluice::tools {

// Chrome's trace event format (JSON, "Trace Event Format", 2016), which Perfetto reads too: a process per rank, a thread per lane.
std::string to_chrome(const std::vector<RankTrace>& traces);
// A row per rank and lane: operations as bars, turns that moved something darker in them, waits as red ticks.
std::string to_svg(const std::vector<RankTrace>& traces);

}  // namespace sluice::tools
