// One rank's part of a sweep.
#pragma once

#include <span>

#include "comm/communicator.h"
#include "tools/tune/sweep.h"

namespace sluice::tools {

inline constexpr int kProbeResults = 2;  // latency, bytes per second

// `results`: seconds of each case, then kProbeResults. The same at every rank. All ranks call it alike.
Status time_as_rank(const Sweep& sweep, Communicator& world, std::span<double> results);

}  // namespace sluice::tools
