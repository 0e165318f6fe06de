// The flight recorder's file of one rank, as comm/trace/dump.h writes it.
//
//   Trust    a file may be anybody's: its size, its numbers and its kinds are checked before they are used.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace sluice::tools {

inline constexpr std::size_t kTraceBytesMax = std::size_t{64} << 20;

struct TracedOperation {
  std::string kind = {};
  std::uint64_t sequence = 0;
  std::int64_t posted_ns = 0;
  Rank waits_for = -1;        // in the communicator
  std::string waits_on = {};  // as WaitReason
  std::uint64_t slice = 0;
  double stuck_seconds = 0;
};

struct TracedCommunicator {
  int number = 0;
  std::uint64_t id = 0;
  std::string name = {};
  std::string lane = {};
  std::string priority = {};
  Rank rank = 0;
  std::vector<Rank> members = {};
  std::uint64_t posted = 0;
  std::string error = {};
  std::vector<TracedOperation> unfinished = {};

  // -1: no member of that rank.
  Rank world_rank(Rank of) const {
    return of >= 0 && static_cast<std::size_t>(of) < members.size() ? members[static_cast<std::size_t>(of)] : -1;
  }
};

struct TracedEvent {
  std::int64_t at_ns = 0;
  std::int64_t posted_ns = 0;
  std::string what = {};  // turn, wait, done, failed
  std::string kind = {};
  int communicator = 0;
  std::uint64_t sequence = 0;
  std::uint64_t bytes = 0;
  std::int64_t slice = -1;  // of a turn or wait
  Rank peer = -1;
  std::string reason = {};  // of a wait, as WaitReason
};

struct RankTrace {
  Rank rank = 0;
  int ranks = 1;
  std::string host = {};
  std::string job = {};
  std::string why = {};
  std::int64_t written_ns = 0;
  std::vector<Rank> lost = {};
  std::vector<TracedCommunicator> communicators = {};
  std::vector<TracedEvent> events = {};

  const TracedCommunicator* communicator(int number) const;  // nullptr: not in the file
};

// Errors: invalid_argument with what is wrong.
Result<RankTrace> parse_trace(const std::string& text);
// Files, or folders with rank-N.json in them. Errors: system; invalid_argument: names the file; ranks of several jobs, a rank twice.
Result<std::vector<RankTrace>> read_traces(const std::vector<std::string>& paths);

}  // namespace sluice::tools
