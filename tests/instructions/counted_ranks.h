// All ranks of one case in this thread, over the loop transport, driven pass by pass, so that callgrind counts what moved
// something and leaves out the idle polls, of which there may be any number.
//
//   Twice    Whether a pass moves anything is known only after it. So a case runs twice, each time in a world of its own: the
//            first run notes what each pass did, the second does the same again and counts the passes that are noted as moving.
//            The loop world is a function of its seed, and every pass of the second run is held against the note.
//   Counted  posting, passes that moved something, taking the result; of all ranks together.
//   Left out idle passes, the virtual clock, notices, and (by the script, see `gate`) the loop transport's own work.
//   Time     messages take none (no delay), so ranks in a fixed order come to rest after each operation, and every operation
//            begins in the same state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/executor/loop_group.h"

namespace sluice::test {

// What the passes of a run did, in order.
struct PassLog {
  std::vector<bool> moved;
};

// One rank's memory and communicators, for a case to post on.
struct CountedRank {
  Communicator world;
  Communicator urgent;  // of all ranks too, in a lane of its own
  WindowBuffer window_in;
  WindowBuffer window_out;
  std::vector<std::byte> in;
  std::vector<std::byte> out;
  std::vector<Work> works;  // filled by the case, emptied by operation()
};

class CountedRanks {
 public:
  using Post = void (*)(CountedRank& rank);
  enum class Run : std::uint8_t { first, second };

  // Borrows the log: the first run writes it, the second reads it. Every buffer has `buffer_bytes`.
  CountedRanks(int ranks, std::size_t buffer_bytes, Run run, PassLog& log);

  // One operation of all ranks, until nothing moves any more. Counted in the second run, if `counted`.
  // Errors: what a Work says; system when the two runs differ; timeout when it does not end.
  Status operation(Post post, bool counted);

 private:
  Result<bool> pass(std::size_t rank);
  Status settle();
  Status take_results();
  void toggle() const;

  detail::LoopRuntimes made_;
  std::vector<CountedRank> ranks_;
  Run run_;
  PassLog& log_;
  std::size_t passes_ = 0;
  bool counted_ = false;
};

}  // namespace sluice::test
