#include "tools/launch/local_ranks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::tools {
namespace {

TEST(LocalRanks, OneProcessRunsWithoutAFork) {
  int calls = 0;
  const auto outcome = run_local_ranks({.processes = 1}, [&](int index, const UniqueId& id) {
    ++calls;
    EXPECT_TRUE(to_rendezvous(id).ok());
    return index + 7;
  });
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 7);
  EXPECT_EQ(calls, 1);
}

TEST(LocalRanks, AllProcessesGetTheIdOfTheJob) {
  const auto mine = make_local_unique_id();
  ASSERT_TRUE(mine.ok());
  const auto outcome =
      run_local_ranks({.processes = 3, .id = *mine}, [&](int, const UniqueId& id) { return id == *mine ? 0 : 1; });
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 0) << outcome->text;
}

TEST(LocalRanks, JobsHaveDifferentIds) {
  UniqueId first{};
  UniqueId second{};
  for (UniqueId* one : {&first, &second}) {
    const auto outcome = run_local_ranks({.processes = 1}, [one](int, const UniqueId& id) {
      *one = id;
      return 0;
    });
    ASSERT_TRUE(outcome.ok());
  }
  EXPECT_NE(first, second);
}

TEST(LocalRanks, ThreadsRunAtTheSameTimeAndTheFirstFailureCounts) {
  std::atomic<int> arrived{0};
  const int code = run_threads(4, [&](int index) {
    ++arrived;
    while (arrived < 4) std::this_thread::yield();  // ends only if all four run together
    return index == 2 ? 9 : 0;
  });
  EXPECT_EQ(code, 9);
}

}  // namespace
}  // namespace sluice::tools
