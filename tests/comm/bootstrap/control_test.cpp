// Threads as ranks: joining, the table, notices, leaving.
#include "comm/bootstrap/control.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

#include "comm/bootstrap/notice_sink.h"
#include "comm/bootstrap/peer_info.h"
#include "tests/comm/bootstrap/job.h"

namespace sluice::test {
namespace {

class ControlOfRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ControlOfRanks, testing::Values(2, 3, 4, 5, 7, 8, 12, 17));

TEST_P(ControlOfRanks, AllHoldTheSameTable) {
  Job job = join_threads(GetParam());
  ASSERT_TRUE(job.whole());
  for (const auto& control : job.controls) {
    EXPECT_EQ(control->ranks(), GetParam());
    for (Rank rank = 0; rank < GetParam(); ++rank) {
      const PeerInfo& here = control->peer(rank);
      const PeerInfo& there = job.controls[static_cast<std::size_t>(rank)]->peer(rank);
      EXPECT_EQ(here.unix_name, there.unix_name);
      EXPECT_EQ(here.port, there.port);
      EXPECT_EQ(here.address, there.address);
      EXPECT_EQ(here.process_id, there.process_id);
      EXPECT_EQ(here.host_name, there.host_name);
    }
  }
  job.leave_all();
}

// As a launcher that binds ranks leaves it: one core for this thread, which the others have too, or not.
TEST(Control, IsCrowdedByRanksThatShareItsCores) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
    if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  Job bound = join_threads(2, [](JoinPlan& plan) { plan.self.cores = static_cast<std::uint64_t>(plan.rank); });
  Job shared = join_threads(2);
  EXPECT_FALSE(shares_network(*shared.controls[0]));
  EXPECT_FALSE(is_crowded(*bound.controls[0]));
  EXPECT_TRUE(is_crowded(*shared.controls[0]));
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  bound.leave_all();
  shared.leave_all();
}

TEST(Control, SharesItsNetworkOnlyWithRanksOfItsHostAndOnlyToOthers) {
  Job job = join_threads(3, [](JoinPlan& plan) { plan.self.host_id += plan.rank == 2 ? 1 : 0; });
  ASSERT_TRUE(job.whole());
  EXPECT_TRUE(shares_network(*job.controls[0]));
  EXPECT_TRUE(shares_network(*job.controls[1]));
  EXPECT_FALSE(shares_network(*job.controls[2]));
  job.leave_all();
}

TEST_P(ControlOfRanks, ANoticeReachesEveryOtherRankOnce) {
  Job job = join_threads(GetParam());
  ASSERT_TRUE(job.whole());
  for (Rank from = 0; from < GetParam(); ++from)
    job.controls[static_cast<std::size_t>(from)]->flood(notice_of(from, "from " + std::to_string(from)));
  for (Rank to = 0; to < GetParam(); ++to)
    for (Rank from = 0; from < GetParam(); ++from) {
      const std::string text = "from " + std::to_string(from);
      EXPECT_TRUE(from == to || job.ears[static_cast<std::size_t>(to)]->wait_for_text(text)) << to << " " << from;
      EXPECT_EQ(job.ears[static_cast<std::size_t>(to)]->times(text), from == to ? 0 : 1);
    }
  job.leave_all();
}

TEST_P(ControlOfRanks, LeavingTogetherAlarmsNobody) {
  Job job = join_threads(GetParam());
  ASSERT_TRUE(job.whole());
  const Nanoseconds start = RealClock::instance().now();
  job.leave_all();
  RecordProperty("leave_ms", static_cast<int>(seconds_since(start) * 1000));
  EXPECT_LT(seconds_since(start), 1.0);
  for (const auto& ear : job.ears) EXPECT_EQ(ear->losses(), 0);
}

TEST(Control, OneThatLeavesIsHeardOnceByAllWhoStay) {
  Job job = join_threads(7);
  ASSERT_TRUE(job.whole());
  job.controls[1]->leave();
  for (const Rank stays : {0, 2, 3, 4, 5, 6}) {
    const Ear& ear = *job.ears[static_cast<std::size_t>(stays)];
    const auto about = [](const std::vector<Ear::Heard>& all) {
      return std::count_if(all.begin(), all.end(), [](const Ear::Heard& one) {
        return one.notice.kind == NoticeKind::peer_left && one.notice.world_rank == 1;
      });
    };
    EXPECT_TRUE(ear.wait([&](const std::vector<Ear::Heard>& all) { return about(all) == 1; })) << stays;
    EXPECT_EQ(ear.losses(), 0);
  }
  job.leave_all();
}

TEST(NoticeSink, KeepsForTheFirstHandlerWhatCameBeforeItAndLossesAboveAll) {
  NoticeSink sink;
  sink.deliver(notice_of(1, "first", NoticeKind::peer_lost));
  for (std::size_t i = 0; i < kUnheardMax + 10; ++i) sink.deliver(notice_of(0, std::to_string(i)));
  Ear ear;
  sink.set([&](const Notice& notice) { ear.hear(notice); });
  EXPECT_TRUE(ear.heard().empty()) << "handlers run on the service thread alone";
  sink.deliver_unheard();
  ASSERT_EQ(ear.heard().size(), kUnheardMax);
  EXPECT_EQ(ear.heard().front().notice.text, "first");
  EXPECT_EQ(ear.heard().back().notice.text, std::to_string(kUnheardMax + 9));
  sink.set(nullptr);
  sink.deliver(notice_of(0, "nobody"));
  sink.set([&](const Notice& notice) { ear.hear(notice); });
  sink.deliver_unheard();
  EXPECT_EQ(ear.times("nobody"), 0);
}

}  // namespace
}  // namespace sluice::test
