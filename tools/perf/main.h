// A benchmark program from its command line to its exit code: ranks are launched processes (MPI, torchrun, `sluice run`) times
// -g forked ones times -t threads; with SLUICE_TRANSPORT=loop all of them share one thread.
#pragma once

#include "tools/perf/perf_test.h"

namespace sluice::tools {

int perf_main(const PerfTest& test, int argc, char** argv);

}  // namespace sluice::tools
