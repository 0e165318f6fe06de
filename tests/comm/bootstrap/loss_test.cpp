// Processes as ranks: killed, stopped, gone without a word. How fast the others know is measured and printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <set>

#include "tests/comm/bootstrap/job.h"
#include "tests/comm/bootstrap/processes.h"

namespace sluice::test {
namespace {

std::int64_t now_ns() { return RealClock::instance().now().count(); }

// Joins, then tells of every notice, and obeys: 'f' floods a notice, 'l' leaves and ends, 'x' ends without a word.
int rank_main(int stream, JoinPlan plan) {
  const Rank rank = plan.rank;
  auto joined = join_by_plan(std::move(plan));
  if (!joined.ok()) {
    tell(stream, "failed " + joined.error().text);
    return 1;
  }
  Control& control = **joined;
  control.on_notice([stream](const Notice& notice) {
    if (notice.kind == NoticeKind::peer_left) return;
    const std::string kind = notice.kind == NoticeKind::peer_lost ? "lost " : "heard ";
    tell(stream, kind + std::to_string(notice.world_rank) + " " + std::to_string(now_ns()) + " " + notice.text);
  });
  tell(stream, "joined");
  char command = 0;
  while (::read(stream, &command, 1) == 1) {
    if (command == 'f') control.flood(notice_of(rank, "from " + std::to_string(rank)));
    if (command == 'l') control.leave();
    if (command != 'f') return 0;
  }
  return 2;
}

struct Processes {
  Processes(int ranks, bool tcp) {
    const Rendezvous rendezvous = *to_rendezvous(*make_local_unique_id());
    for (Rank rank = 0; rank < ranks; ++rank)
      all.emplace_back([&](int stream) {
        JoinPlan plan = plan_of(rank, ranks, 20s, Config());
        plan.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
        if (tcp) own_host(plan);
        return rank_main(stream, std::move(plan));
      });
    for (Process& process : all) EXPECT_EQ(process.line(), "joined");
  }
  // Every rank but `except` says that exactly `lost` are lost. Returns the largest time from `since`, in seconds.
  double expect_losses(const std::set<Rank>& lost, std::int64_t since) {
    double latest = 0;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (lost.contains(static_cast<Rank>(rank))) continue;
      std::set<Rank> told;
      while (told.size() < lost.size()) {
        const std::string line = all[rank].line(5s);
        int about = -1;
        long long when = 0;
        if (std::sscanf(line.c_str(), "lost %d %lld", &about, &when) != 2) {
          ADD_FAILURE() << "rank " << rank << " said '" << line << "'";
          break;
        }
        told.insert(about);
        latest = std::max(latest, static_cast<double>(when - since) * 1e-9);
      }
      EXPECT_EQ(told, lost) << "rank " << rank;
    }
    return latest;
  }
  void expect_flood_from(Rank from, const std::set<Rank>& gone) {
    all[static_cast<std::size_t>(from)].command('f');
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (static_cast<Rank>(rank) == from || gone.contains(static_cast<Rank>(rank))) continue;
      const std::string line = all[rank].line(5s);
      EXPECT_TRUE(line.starts_with("heard " + std::to_string(from) + " "))
          << "rank " << rank << " said '" << line << "'";
    }
  }
  void expect_silence(const std::set<Rank>& gone, Nanoseconds time) {
    std::this_thread::sleep_for(time);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      EXPECT_EQ(gone.contains(static_cast<Rank>(rank)) ? "" : all[rank].line(1ms), "") << "rank " << rank;
  }
  void leave_all(const std::set<Rank>& gone) {
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (!gone.contains(static_cast<Rank>(rank))) all[rank].command('l');
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (gone.contains(static_cast<Rank>(rank))) continue;
      EXPECT_EQ(all[rank].line(), "") << "rank " << rank << " heard something while all left";
      EXPECT_EQ(all[rank].wait(), 0) << "rank " << rank;
    }
  }

  std::vector<Process> all;
};

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
  Processes job(9, GetParam().tcp);
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
  Processes job(5, GetParam());
  job.all[1].signal(SIGSTOP);
  job.expect_silence({}, 3s);
  job.all[1].signal(SIGCONT);
  job.expect_flood_from(4, {});
  job.leave_all({});
}

TEST_P(ProcessStop, AStoppedRankIsNotLostEvenWhenItsParentDies) {
  Processes job(7, GetParam());
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
  Processes job(4, GetParam());
  const std::int64_t start = now_ns();
  job.all[3].command('x');
  EXPECT_LT(job.expect_losses({3}, start), 2.0);
  job.leave_all({3});
}

TEST_P(ProcessStop, OneThatLeavesEarlyIsNoLossAndTheOthersGoOn) {
  Processes job(7, GetParam());
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
