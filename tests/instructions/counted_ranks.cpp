#include "tests/instructions/counted_ranks.h"

#include <valgrind/callgrind.h>

#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"

namespace sluice::test {
namespace {

constexpr int kRoundsMax = 10'000;  // of one operation
constexpr std::uint64_t kUrgentId = 100;
constexpr Nanoseconds kStep = std::chrono::microseconds(1);

// Made alike at every rank, without the blocking split.
Communicator urgent_communicator(Runtime& runtime, Rank rank, int ranks) {
  detail::Identity identity;
  identity.id = kUrgentId;
  identity.name = "urgent";
  identity.lane = {"urgent", Priority::urgent};
  identity.rank = rank;
  identity.deadline = std::chrono::minutes(10);
  for (Rank member = 0; member < ranks; ++member) identity.members.push_back(member);
  return runtime.state()->make_communicator(std::move(identity));
}

CountedRank make_rank(Runtime& runtime, Rank rank, int ranks, std::size_t buffer_bytes) {
  CountedRank made;
  made.world = runtime.world();
  made.urgent = urgent_communicator(runtime, rank, ranks);
  made.window_in = *made.world.allocate(buffer_bytes);
  made.window_out = *made.world.allocate(buffer_bytes);
  made.in.resize(buffer_bytes);
  made.out.resize(buffer_bytes);
  made.works.reserve(4);
  return made;
}

}  // namespace

CountedRanks::CountedRanks(int ranks, std::size_t buffer_bytes, Run run, PassLog& log) : run_(run), log_(log) {
  LoopOptions loop;
  loop.delay_min = loop.delay_max = Nanoseconds(0);
  made_ = *detail::make_loop_runtimes(ranks, loop, {});
  for (Rank rank = 0; rank < ranks; ++rank)
    ranks_.push_back(make_rank(*made_.runtimes[static_cast<std::size_t>(rank)], rank, ranks, buffer_bytes));
}

Status CountedRanks::operation(Post post, bool counted) {
  counted_ = counted && run_ == Run::second;
  toggle();
  for (CountedRank& rank : ranks_) post(rank);
  toggle();
  SLUICE_TRY(settle());
  return take_results();
}

// Passes of the ranks in turn, until a round of them moves nothing.
Status CountedRanks::settle() {
  for (int round = 0; round < kRoundsMax; ++round) {
    bool any = made_.group->controls().deliver() > 0;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      SLUICE_TRY_ASSIGN(const bool moved, pass(rank));
      any = any || moved;
    }
    if (!any && !made_.group->world().advance(kStep)) return {};
  }
  return {Code::timeout, "the ranks were still moving after " + std::to_string(kRoundsMax) + " rounds of passes"};
}

Result<bool> CountedRanks::pass(std::size_t rank) {
  const std::size_t index = passes_++;
  if (run_ == Run::second && index >= log_.moved.size())
    return Error{Code::system, "the second run has more passes than the first: the loop world did not repeat itself"};
  const bool counted = run_ == Run::second && log_.moved[index];
  detail::Engine& engine = made_.runtimes[rank]->state()->engine();
  if (counted) toggle();
  const bool moved = engine.pass() > 0;
  if (counted) toggle();
  if (run_ == Run::first) log_.moved.push_back(moved);
  if (log_.moved[index] == moved) return moved;
  return Error{Code::system, "pass " + std::to_string(index) + " of rank " + std::to_string(rank) +
                                 " moved something in " + (moved ? "the second" : "the first") +
                                 " run only: the loop world did not repeat itself"};
}

Status CountedRanks::take_results() {
  for (CountedRank& rank : ranks_) {
    for (Work& work : rank.works)
      if (!work.test())
        return {Code::timeout, "the ranks are at rest, but an operation of rank " + std::to_string(rank.world.rank()) +
                                   " is not finished"};
    toggle();
    Status done;
    for (Work& work : rank.works)
      if (Status one = work.wait(); !one.ok()) done = std::move(one);
    toggle();
    rank.works.clear();
    if (!done.ok()) return done;
  }
  return {};
}

// Counting is off at the start (--collect-atstart=no); from there on it is begun and ended in turn.
void CountedRanks::toggle() const {
  if (counted_) CALLGRIND_TOGGLE_COLLECT;
}

}  // namespace sluice::test
