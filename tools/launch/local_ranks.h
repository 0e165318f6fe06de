// Local ranks: forked processes that share a UniqueId, and threads as ranks.
//
//   Use      run_local_ranks before any Runtime exists in the process; in each process run_threads for the ranks it holds, and
//            in each of those Runtime::join with the id.
#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "comm/bootstrap/unique_id.h"
#include "tools/launch/processes.h"

namespace sluice::tools {

struct LocalRanksOptions {
  int processes = 1;
  Nanoseconds grace = std::chrono::seconds(5);
  std::optional<UniqueId> id = {};  // of a job that others take part in; empty: a fresh one of this host
};

// Runs body(index, id) in `processes` forked processes; with one process, right here without a fork. Blocks until all have
// ended. Errors: those of run_processes and make_local_unique_id.
Result<LaunchOutcome> run_local_ranks(const LocalRanksOptions& options,
                                      const std::function<int(int index, const UniqueId& id)>& body);

// Runs body(i) for i = 0..threads-1, each on a thread of its own (i = 0 on this one). Returns the first value other than 0,
// by index.
int run_threads(int threads, const std::function<int(int index)>& body);

}  // namespace sluice::tools
