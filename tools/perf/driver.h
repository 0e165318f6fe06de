// Runs one benchmark program on the ranks of this thread: the table, or a sweep of random combinations.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/perf/options.h"
#include "tools/perf/perf_test.h"
#include "tools/perf/ranks.h"

namespace sluice::tools {

// Exit codes, alike on all ranks unless one of them is lost.
inline constexpr int kExitWrong = 1;  // wrong values, or slower than NCCL_TESTS_MIN_BW asks
inline constexpr int kExitUsage = 2;
inline constexpr int kExitError = 3;  // a collective failed

// Collective over the ranks of the job. World rank 0 prints to `out`; errors go to standard error, once per rank that meets
// them (those of the call itself, which all ranks meet alike, at rank 0 only).
int run_perf(const PerfTest& test, const Options& options, const std::vector<std::string>& arguments, Ranks& ranks,
             std::FILE* out);

}  // namespace sluice::tools
