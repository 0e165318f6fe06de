// Local ranks: forked processes that share a UniqueId, and threads as ranks.
//
//   Id       made in the process that holds rank 0 (its listener lives there), after the fork; it reaches the other
//            processes through pipes of the launching parent, never through a file or the environment.
//   Use      run_local_ranks before any Runtime exists in the process; in each process run_threads for the ranks it holds.
#pragma once

#include <functional>
#include <optional>

#include "base/config.h"
#include "base/result.h"
#include "comm/bootstrap/unique_id.h"
#include "tools/launch/processes.h"

namespace sluice::tools {

// Hands the id round among launchers on several hosts: the one that holds rank 0 gives `mine`, all get it.
using ShareId = std::function<Result<UniqueId>(const std::optional<UniqueId>& mine)>;

struct LocalRanksOptions {
  int processes = 1;
  Nanoseconds grace = std::chrono::seconds(5);
  bool holds_rank_0 = true;  // process 0 makes the id; otherwise `share` brings it
  ShareId share = {};        // empty: the job is these processes alone
};

// Runs body(index, id) in `processes` forked processes; with one process, right here without a fork. Blocks until all have
// ended. Errors: those of run_processes, Control::make_unique_id and `share`.
Result<LaunchOutcome> run_local_ranks(const LocalRanksOptions& options, const Config& config,
                                      const std::function<int(int index, const UniqueId& id)>& body);

// Runs body(i) for i = 0..threads-1, each on a thread of its own (i = 0 on this one). Returns the first value other than 0,
// by index.
int run_threads(int threads, const std::function<int(int index)>& body);

}  // namespace sluice::tools
