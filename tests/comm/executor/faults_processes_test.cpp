// Ranks that die, leave or stop, as real processes over shared memory and TCP.
#include <gtest/gtest.h>

#include "tests/comm/executor/rank_processes.h"

namespace sluice {
namespace {

using test::now_seconds;
using test::RankProcesses;
using test::Seen;

constexpr double kNoticeMax = 2.0;  // seconds, as promised

class FaultsOfProcesses : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { set_log_level(LogLevel::off); }
  RuntimeOptions options(const std::string& deadline = "10min") const {
    RuntimeOptions options;
    for (const auto& [setting, value] : {std::pair<Setting, std::string>{Setting::transport, GetParam()},
                                         {Setting::deadline, deadline},
                                         {Setting::log, "off"}})
      if (const Status done = options.config.set(setting, value, Origin::file); !done.ok()) die_of(done.error());
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, FaultsOfProcesses, testing::Values("shm", "tcp"),
                         [](const auto& tested) { return tested.param; });

Status sum_once(Communicator& communicator, std::int64_t& value) {
  return communicator.all_reduce({&value, &value, 1, DataType::int64}, ReduceOp::sum).wait();
}

// All-reduces of 1 MiB until an error comes.
void reduce_until_error(Communicator& communicator, Seen& seen) {
  std::vector<float> data(1 << 18, 1.0F);
  while (true) {
    const Status done =
        communicator.all_reduce({data.data(), data.data(), data.size(), DataType::float32}, ReduceOp::max).wait();
    if (!done.ok()) return seen.note(done);
    seen.stage = std::max(seen.stage.load(), 1);
  }
}

TEST_P(FaultsOfProcesses, AKilledRankIsNamedToEveryOtherWithinTwoSeconds) {
  RankProcesses ranks(4, options(), [](Runtime& runtime, Seen& seen) {
    Communicator world = runtime.world();
    reduce_until_error(world, seen);
  });
  ASSERT_TRUE(ranks.all_reach(1, 60));
  const double killed = now_seconds();
  ranks.signal(2, SIGKILL);
  for (const int rank : {0, 1, 3}) {
    ASSERT_TRUE(ranks.ends(rank, 10)) << "rank " << rank << " hangs";
    EXPECT_EQ(ranks[rank].code, Code::peer_lost) << ranks[rank].text;
    EXPECT_NE(std::string(ranks[rank].text).find("rank 2"), std::string::npos) << ranks[rank].text;
    EXPECT_LT(ranks[rank].at - killed, kNoticeMax);
    std::printf("  rank %d knew after %.3f s\n", rank, ranks[rank].at - killed);
  }
}

TEST_P(FaultsOfProcesses, ARankThatLeavesIsNamedToThoseWhoWaitForIt) {
  RankProcesses ranks(3, options(), [](Runtime& runtime, Seen& seen) {
    Communicator world = runtime.world();
    std::int64_t value = 1;
    if (const Status done = sum_once(world, value); !done.ok()) return seen.note(done);
    seen.stage = 1;
    if (world.rank() == 1) return seen.note({});
    seen.note(sum_once(world, value));
  });
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(ranks.ends(rank, 30)) << "rank " << rank << " hangs";
    EXPECT_EQ(ranks[rank].code, Code::peer_lost) << ranks[rank].text;
    EXPECT_NE(std::string(ranks[rank].text).find("rank 1"), std::string::npos) << ranks[rank].text;
    EXPECT_LT(ranks[rank].at - ranks[1].at, kNoticeMax);
  }
}

TEST_P(FaultsOfProcesses, AStoppedRankIsReportedAtTheDeadlineNotBefore) {
  RankProcesses ranks(3, options("3s"), [](Runtime& runtime, Seen& seen) {
    Communicator world = runtime.world();
    reduce_until_error(world, seen);
  });
  ASSERT_TRUE(ranks.all_reach(1, 60));
  const double stopped = now_seconds();
  ranks.signal(1, SIGSTOP);
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(ranks.ends(rank, 20)) << "rank " << rank << " hangs";
    EXPECT_EQ(ranks[rank].code, Code::timeout) << ranks[rank].text;
    EXPECT_NE(std::string(ranks[rank].text).find("rank 1"), std::string::npos) << ranks[rank].text;
    EXPECT_GT(ranks[rank].at - stopped, 2.9);
    EXPECT_LT(ranks[rank].at - stopped, 3.0 + kNoticeMax);
  }
  ranks.signal(1, SIGCONT);
}

TEST_P(FaultsOfProcesses, OtherCommunicatorsGoOnAndShrinkGivesAWorkingOne) {
  RankProcesses ranks(4, options(), [](Runtime& runtime, Seen& seen) {
    Communicator world = runtime.world();
    auto pair = world.split(world.rank() / 2, 0);
    if (!pair.ok()) return seen.note(pair.status());
    std::int64_t value = 1;
    if (const Status done = sum_once(*pair, value); !done.ok()) return seen.note(done);
    reduce_until_error(world, seen);
    if (seen.code != Code::peer_lost) return;

    if (world.rank() < 2) {  // the pair without the lost rank
      value = world.rank() + 1;
      if (const Status done = sum_once(*pair, value); !done.ok()) return seen.note(done);
      if (value != 3) return seen.note({Code::system, "the pair's sum is " + std::to_string(value)});
    }
    auto rest = world.shrink();
    if (!rest.ok()) return seen.note(rest.status());
    value = world.rank();
    if (const Status done = sum_once(*rest, value); !done.ok()) return seen.note(done);
    if (rest->ranks() != 3 || value != 0 + 1 + 3)
      return seen.note({Code::system, std::to_string(rest->ranks()) + " ranks left, sum " + std::to_string(value)});
    seen.note(rest->close());
    seen.stage = 2;
  });
  ASSERT_TRUE(ranks.all_reach(1, 60));
  ranks.signal(2, SIGKILL);
  for (const int rank : {0, 1, 3}) {
    ASSERT_TRUE(ranks.ends(rank, 20)) << "rank " << rank << " hangs at stage " << ranks[rank].stage;
    EXPECT_EQ(ranks[rank].stage, 2) << ranks[rank].text;
    EXPECT_EQ(ranks[rank].code, Code::ok) << ranks[rank].text;
  }
}

TEST_P(FaultsOfProcesses, TwoDeathsAtOnceAreSurvivedToo) {
  RankProcesses ranks(5, options(), [](Runtime& runtime, Seen& seen) {
    Communicator world = runtime.world();
    const Rank first_rank = world.rank();  // a communicator that shrank has others
    reduce_until_error(world, seen);
    SplitOptions within;
    within.deadline = std::chrono::seconds(10);
    for (int attempt = 0; attempt < 3; ++attempt) {  // the second death may come to light after the first was voted on
      auto rest = world.shrink(within);
      if (!rest.ok()) return seen.note(rest.status());
      std::int64_t value = first_rank;
      const Status done = sum_once(*rest, value);
      world = *rest;
      if (!done.ok()) continue;
      if (rest->ranks() != 3 || value != 0 + 2 + 4) return seen.note({Code::system, "sum is " + std::to_string(value)});
      seen.note(rest->close());
      seen.stage = 2;
      return;
    }
  });
  ASSERT_TRUE(ranks.all_reach(1, 60));
  ranks.signal(1, SIGKILL);
  ranks.signal(3, SIGKILL);
  for (const int rank : {0, 2, 4}) {
    ASSERT_TRUE(ranks.ends(rank, 40)) << "rank " << rank << " hangs at stage " << ranks[rank].stage;
    EXPECT_EQ(ranks[rank].stage, 2) << ranks[rank].text;
  }
}

}  // namespace
}  // namespace sluice
