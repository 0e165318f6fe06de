// Processes as ranks: killed, stopped, gone without a word. How fast the others know is measured and printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "tests/comm/bootstrap/job.h"
#include "tests/comm/bootstrap/rank_processes.h"

namespace sluice::test {
namespace {

// All on this host; over TCP when `tcp`, as if each rank had a host of its own.
RankProcesses processes(int ranks, bool tcp) {
  const Rendezvous rendezvous = *to_rendezvous(*make_local_unique_id());
  return RankProcesses(ranks, [=](Rank rank) {
    JoinPlan plan = plan_of(rank, ranks, 20s, Config());
    plan.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
    if (tcp) own_host(plan);
    return plan;
  });
}

struct LossCase {
  bool tcp;
  std::vector<Rank> killed;
};
void PrintTo(const LossCase& one, std::ostream* out) {
  *out << (one.tcp ? "tcp" : "unix") << " killed";
  for (const Rank rank : one.killed) *out << " " << rank;
}

class ProcessLoss : public testing::TestWithParam<LossCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, ProcessLoss,
                         testing::Values(LossCase{false, {0}}, LossCase{false, {1}}, LossCase{false, {6}},
                                         LossCase{true, {0}}, LossCase{true, {1}}, LossCase{true, {6}},
                                         LossCase{false, {0, 1}}, LossCase{true, {1, 3}}, LossCase{false, {0, 2, 6}},
                                         LossCase{true, {0, 1, 2}}));

TEST_P(ProcessLoss, KilledRanksAreKnownToAllOthersWithinTwoSecondsAndTheTreeMends) {
  RankProcesses job = processes(9, GetParam().tcp);
  const std::set<Rank> killed(GetParam().killed.begin(), GetParam().killed.end());
  const std::int64_t start = now_ns();
  for (const Rank rank : killed) job.all[static_cast<std::size_t>(rank)].signal(SIGKILL);
  const double seconds = job.expect_losses(killed, start);
  std::printf("    known to all others after %.1f ms\n", seconds * 1e3);
  EXPECT_LT(seconds, 2.0);
  for (Rank from = 0; from < 9; ++from)
    if (!killed.contains(from)) job.expect_flood_from(from, killed);
  job.leave_all(killed);
}

class ProcessStop : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Tcp, ProcessStop, testing::Bool());

TEST_P(ProcessStop, AStoppedRankIsNotLostAndHearsLaterWhatItMissed) {
  RankProcesses job = processes(5, GetParam());
  job.all[1].signal(SIGSTOP);
  job.expect_silence({}, 3s);
  job.all[1].signal(SIGCONT);
  job.expect_flood_from(4, {});
  job.leave_all({});
}

TEST_P(ProcessStop, AStoppedRankIsNotLostEvenWhenItsParentDies) {
  RankProcesses job = processes(7, GetParam());
  job.all[3].signal(SIGSTOP);
  const std::int64_t start = now_ns();
  job.all[1].signal(SIGKILL);
  std::this_thread::sleep_for(2s);
  job.all[3].signal(SIGCONT);
  job.expect_losses({1}, start);
  job.expect_flood_from(3, {1});
  job.expect_flood_from(6, {1});
  job.leave_all({1});
}

TEST_P(ProcessStop, EndingWithoutLeavingIsALoss) {
  RankProcesses job = processes(4, GetParam());
  const std::int64_t start = now_ns();
  job.all[3].command('x');
  EXPECT_LT(job.expect_losses({3}, start), 2.0);
  job.leave_all({3});
}

TEST_P(ProcessStop, OneThatLeavesEarlyIsNoLossAndTheOthersGoOn) {
  RankProcesses job = processes(7, GetParam());
  for (const Rank early : {0, 1}) {
    job.all[static_cast<std::size_t>(early)].command('l');
    EXPECT_EQ(job.all[static_cast<std::size_t>(early)].wait(), 0);
  }
  job.expect_silence({0, 1}, 500ms);
  for (Rank from = 2; from < 7; ++from) job.expect_flood_from(from, {0, 1});
  job.leave_all({0, 1});
}

}  // namespace
}  // namespace sluice::test
