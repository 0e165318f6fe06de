// Threads as ranks: joining, the table, notices, leaving.
#include "comm/bootstrap/control.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice::test
