// Lanes over the loop transport: communicators go on independently, the urgent one first, whatever the order of posts.
#include <gtest/gtest.h>

#include <memory>

#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"
#include "tests/comm/executor/loop_fixture.h"

namespace sluice {
namespace {

using test::CaseRun;
using test::CollectiveCase;
using test::LoopJob;

// A communicator of all ranks, made alike at every rank without the blocking split.
std::vector<Communicator> communicator_of_all(LoopJob& job, std::uint64_t id, const Lane& lane) {
  std::vector<Communicator> made;
  for (std::size_t rank = 0; rank < job.worlds.size(); ++rank) {
    detail::Identity identity;
    identity.id = id;
    identity.name = lane.name;
    identity.lane = lane;
    identity.rank = static_cast<Rank>(rank);
    identity.deadline = std::chrono::minutes(10);
    for (std::size_t member = 0; member < job.worlds.size(); ++member)
      identity.members.push_back(static_cast<Rank>(member));
    made.push_back(job.made.runtimes[rank]->state()->make_communicator(identity));
  }
  return made;
}

CollectiveCase sum_of(int ranks, std::size_t count) {
  CollectiveCase one;
  one.ranks = ranks;
  one.count = count;
  return one;
}

std::vector<Work> post(CaseRun& run, std::vector<Communicator>& communicators) {
  std::vector<Work> works;
  works.reserve(communicators.size());
  for (Communicator& one : communicators) works.push_back(run.post(one));
  return works;
}

TEST(Lanes, AnUrgentOperationOvertakesBulkThatWasPostedBefore) {
  LoopJob job(3);
  auto bulk = communicator_of_all(job, 100, {"dp", Priority::bulk});
  auto urgent = communicator_of_all(job, 200, {"tp", Priority::urgent});
  CaseRun large(sum_of(3, 200'000));
  CaseRun small(sum_of(3, 500));
  std::vector<Work> large_works = post(large, bulk);
  for (int i = 0; i < 50; ++i) job.made.group->step();
  std::vector<Work> small_works = post(small, urgent);
  for (Work& work : small_works) ASSERT_TRUE(work.wait().ok());
  for (Work& work : large_works) EXPECT_FALSE(work.test()) << "the bulk operation ended before the urgent one";
  for (Work& work : large_works) ASSERT_TRUE(work.wait().ok());
  EXPECT_EQ(small.check() + large.check(), "");
}

TEST(Lanes, OperationsInOppositeOrdersOnDifferentRanksAllEnd) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    Rng rng(seed);
    LoopOptions options;
    options.seed = seed;
    LoopJob job(4, options);
    std::vector<std::vector<Communicator>> communicators;
    std::vector<std::unique_ptr<CaseRun>> runs;
    for (std::uint64_t i = 0; i < 5; ++i) {
      communicators.push_back(
          communicator_of_all(job, 100 + i, {"lane" + std::to_string(i % 3), static_cast<Priority>(1 + i % 3)}));
      runs.push_back(std::make_unique<CaseRun>(sum_of(4, rng.below(3000))));
    }
    std::vector<Work> works;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      std::vector<std::size_t> order{0, 1, 2, 3, 4};
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
      for (const std::size_t which : order) works.push_back(runs[which]->post(communicators[which][rank]));
    }
    for (Work& work : works) ASSERT_TRUE(work.wait().ok()) << "seed " << seed;
    for (const auto& run : runs) ASSERT_EQ(run->check(), "") << "seed " << seed;
  }
}

TEST(Lanes, CountersAreKeptPerLane) {
  LoopJob job(2);
  auto tp = communicator_of_all(job, 100, {"tp", Priority::urgent});
  CaseRun run(sum_of(2, 1000));
  for (Work& work : post(run, tp)) ASSERT_TRUE(work.wait().ok());
  const std::vector<LaneCounters> counters = job.made.runtimes[0]->lane_counters();
  ASSERT_EQ(counters.size(), 1U);
  EXPECT_EQ(counters[0].lane, "tp");
  EXPECT_EQ(counters[0].operations, 1U);
  EXPECT_GT(counters[0].bytes_sent, 0U);
}

TEST(Lanes, TimeOfOverlappingOperationsIsCountedOnce) {
  LoopJob job(2);
  auto one = communicator_of_all(job, 100, {"dp", Priority::bulk});
  auto other = communicator_of_all(job, 200, {"dp", Priority::bulk});
  const Nanoseconds begin = job.made.group->world().clock().now();
  CaseRun first(sum_of(2, 50'000)), second(sum_of(2, 50'000));
  std::vector<Work> first_works = post(first, one);
  std::vector<Work> second_works = post(second, other);
  for (Work& work : first_works) ASSERT_TRUE(work.wait().ok());
  for (Work& work : second_works) ASSERT_TRUE(work.wait().ok());
  const double passed = std::chrono::duration<double>(job.made.group->world().clock().now() - begin).count();
  const double busy = job.made.runtimes[0]->lane_counters()[0].seconds_busy;
  EXPECT_GT(busy, 0);
  EXPECT_LE(busy, passed);
}

// A rank of its own waits for nothing but its engine.
TEST(Lanes, OfOnePriorityShareTheEngineByWeight) {
  LoopJob job(1);
  auto light = communicator_of_all(job, 100, {"light", Priority::bulk, 1});
  auto heavy = communicator_of_all(job, 200, {"heavy", Priority::bulk, 3});
  CaseRun light_run(sum_of(1, 200'000)), heavy_run(sum_of(1, 200'000));
  std::vector<Work> light_works = post(light_run, light);
  std::vector<Work> heavy_works = post(heavy_run, heavy);
  detail::RuntimeState& state = *job.made.runtimes[0]->state();
  const auto moved = [&](const Communicator& one) {
    return static_cast<double>(state.lane_state(one.lane()).share.moved());
  };
  for (int i = 0; i < 500; ++i) job.made.group->step();  // the first turn of all is for whoever was posted first
  EXPECT_GT(moved(heavy[0]), 0);
  EXPECT_NEAR(moved(light[0]) / moved(heavy[0]), 1, 0.05);
  for (Work& work : light_works) ASSERT_TRUE(work.wait().ok());
  for (Work& work : heavy_works) ASSERT_TRUE(work.wait().ok());
  EXPECT_EQ(light_run.check() + heavy_run.check(), "");
}

TEST(Lanes, ACeilingHolds) {
  LoopJob job(2);
  constexpr std::uint64_t kRate = 10 << 20;
  auto slow = communicator_of_all(job, 100, {.name = "slow", .bytes_per_second_max = kRate});
  const Clock& clock = job.made.group->world().clock();
  double bytes = 0;
  const Nanoseconds begin = clock.now();
  for (int i = 0; i < 4; ++i) {
    CaseRun run(sum_of(2, 1'000'000));
    for (Work& work : post(run, slow)) ASSERT_TRUE(work.wait().ok());
    ASSERT_EQ(run.check(), "");
    bytes = static_cast<double>(job.made.runtimes[0]->lane_counters()[0].bytes_sent);
  }
  const double seconds = std::chrono::duration<double>(clock.now() - begin).count();
  EXPECT_NEAR(bytes / seconds / static_cast<double>(kRate), 1, 0.03) << bytes << " bytes in " << seconds << " s";
}

// What is copied here is bounded by itself: a reduction of one rank sends nothing.
TEST(Lanes, ALimitOfCopiesHolds) {
  LoopJob job(1);
  constexpr double kRate = 10 << 20;
  auto slow = communicator_of_all(job, 100, {.name = "slow", .copied_per_second_max = std::uint64_t{10} << 20});
  const Clock& clock = job.made.group->world().clock();
  const Nanoseconds begin = clock.now();
  constexpr int kRuns = 4;
  constexpr std::size_t kCount = 1'000'000;
  for (int i = 0; i < kRuns; ++i) {
    CaseRun run(sum_of(1, kCount));
    for (Work& work : post(run, slow)) ASSERT_TRUE(work.wait().ok());
    ASSERT_EQ(run.check(), "");
  }
  EXPECT_EQ(job.made.runtimes[0]->lane_counters()[0].bytes_sent, 0U);
  const double seconds = std::chrono::duration<double>(clock.now() - begin).count();
  EXPECT_NEAR(kRuns * kCount * sizeof(float) / seconds / kRate, 1, 0.03) << seconds << " s";
}

// A rank of its own, so that the urgent operation never waits; the clock is turned by hand, about 100 MB/s.
TEST(Lanes, ALessUrgentLaneGetsItsGuaranteeBeforeAMoreUrgentOneEnds) {
  LoopJob job(1);
  auto urgent = communicator_of_all(job, 100, {.name = "tp", .priority = Priority::urgent});
  auto bulk =
      communicator_of_all(job, 200, {.name = "dp", .priority = Priority::bulk, .bytes_per_second_min = 32 << 20});
  CaseRun large(sum_of(1, 400'000)), small(sum_of(1, 40'000));
  std::vector<Work> large_works = post(large, urgent);
  std::vector<Work> small_works = post(small, bulk);
  while (!large_works[0].test() && !small_works[0].test()) {
    job.made.group->step();
    job.made.group->world().clock().advance(std::chrono::microseconds(10));
  }
  EXPECT_TRUE(small_works[0].test());
  EXPECT_FALSE(large_works[0].test());
  ASSERT_TRUE(large_works[0].wait().ok());
  EXPECT_EQ(small.check() + large.check(), "");
}

TEST(Lanes, OfTheConfigurationFillWhatCodeLeavesOpen) {
  RuntimeOptions options;
  ASSERT_TRUE(options.config.set(Setting::lanes, "dp:bulk:3", Origin::environment).ok());
  auto made = Runtime::loop(1, 1, options);
  ASSERT_TRUE(made.ok());
  const auto dp = (*made)[0]->world().split(0, 0, {.lane = {.name = "dp"}, .name = {}, .deadline = {}});
  ASSERT_TRUE(dp.ok()) << dp.status().text();
  EXPECT_EQ(dp->lane().priority, Priority::bulk);
  EXPECT_EQ(dp->lane().weight, 3U);
}

TEST(Lanes, OfTheConfigurationThatCannotBeReadAreAnError) {
  RuntimeOptions options;
  ASSERT_TRUE(options.config.set(Setting::lanes, "dp:fast", Origin::environment).ok());
  const auto made = Runtime::loop(1, 1, options);
  ASSERT_FALSE(made.ok());
  EXPECT_NE(made.status().text().find("priority is 'fast'"), std::string::npos) << made.status().text();
}

TEST(Lanes, ThatCannotBeAreRefusedBySplit) {
  auto made = Runtime::loop(1, 1, {});
  const auto split = (*made)[0]->world().split(0, 0, {.lane = {.name = "dp", .weight = 0}, .name = {}, .deadline = {}});
  ASSERT_FALSE(split.ok());
  EXPECT_EQ(split.error().code, Code::invalid_argument);
  EXPECT_NE(split.error().text.find("weight is '0'"), std::string::npos) << split.error().text;
}

}  // namespace
}  // namespace sluice
