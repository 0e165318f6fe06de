// What a rank knows at one moment, as a file: its communicators, the operations that have not ended, and the last events. `sluice trace`
// reads the files of all ranks together.
//
//   Form    one JSON document, version kTraceVersion. Times are nanoseconds of the system's clock (CLOCK_REALTIME), so that ranks of hosts
//           whose clocks agree can be laid side by side.
//   Rights  for the owner alone: names of communicators and lanes are the application's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/trace/recorder.h"

namespace sluice::detail {

inline constexpr int kTraceVersion = 2;

// An operation that has not ended.
struct TraceOperation {
  std::string kind = {};
  std::uint64_t sequence = 0;   // 0: send or receive
  std::uint64_t posted_at = 0;  // ticks
  Rank waits_for = -1;          // in the communicator
  WaitReason waits_on = WaitReason::nothing;
  std::size_t slice = 0;
  double stuck_seconds = 0;  // without progress
};

struct TraceCommunicator {
  std::uint16_t number = 0;  // in events
  std::uint64_t id = 0;
  std::string name = {};
  std::string lane = {};
  std::string priority = {};
  Rank rank = 0;
  std::vector<Rank> members = {};  // world ranks, by rank
  std::uint64_t posted = 0;        // collectives
  std::string error = {};          // empty: it works
  std::vector<TraceOperation> unfinished = {};
};

// A rank of the world that died, and how this one heard of it.
struct TraceLoss {
  Rank rank = 0;
  std::string how = {};
};

struct TraceDump {
  Rank rank = 0;  // in the world
  int ranks = 1;
  std::string host = {};
  std::string job = {};  // equal for all ranks of a job
  std::string why = {};
  std::uint64_t recorded = 0;  // events since the beginning; the file has the last ones
  std::vector<TraceLoss> lost = {};
  std::vector<TraceCommunicator> communicators = {};
  std::vector<TraceEvent> events = {};
};

std::string to_json(const TraceDump& dump, const Clock& clock);
// Into FOLDER/JOB/rank-N.json; makes the folders, for their owner alone. Returns the name. Errors: system; refused (a folder that others
// may write to).
Result<std::string> write_trace(const std::string& folder, const TraceDump& dump, const Clock& clock);

}  // namespace sluice::detail
