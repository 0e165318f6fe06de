// Proved on symbols, run on numbers, then broken on purpose: a check that cannot fail proves nothing.
#include "comm/algorithms/ring.h"

#include <gtest/gtest.h>

#include "comm/verify/verify.h"
#include "tests/support/run_schedule.h"

namespace sluice {
namespace {

std::vector<Rank> shuffled(int ranks) {
  std::vector<Rank> order;
  for (int i = 0; i < ranks; ++i) order.push_back((i * 5 + 3) % ranks);  // ranks not a multiple of 5
  return order;
}

class Ring : public testing::TestWithParam<int> {};  // number of ranks
INSTANTIATE_TEST_SUITE_P(Ranks, Ring, testing::Values(1, 2, 3, 4, 7, 8, 16));

TEST_P(Ring, IsProvedInAnyOrderOfRanks) {
  for (const auto& ring : {ring_all_reduce(shuffled(GetParam())), ring_reduce_scatter(shuffled(GetParam())),
                           ring_all_gather(shuffled(GetParam()))}) {
    ASSERT_TRUE(ring.ok()) << ring.error().text;
    const auto proof = verify(*ring);
    EXPECT_TRUE(proof.ok()) << proof.error().text;
  }
}

TEST_P(Ring, SumsCountsThatDoNotDivide) {
  const auto ring = ring_all_reduce(shuffled(GetParam()));
  for (const std::size_t count : {std::size_t{1}, std::size_t{5}, std::size_t{1003}}) {
    test::ScheduleRun run;
    run.count = count;
    EXPECT_EQ(test::run_schedule(*ring, run), test::expected_outputs(ring->shape, run)) << "count " << count;
  }
}

TEST(RingMessages, GoToTheNextRankOnly) {
  const auto ring = ring_all_reduce(std::vector<Rank>{2, 0, 1});
  for (const Step& step : ring->steps) {
    const Rank from = step.from[0].rank;
    EXPECT_EQ(step.executor, from == 2 ? 0 : from == 0 ? 1 : 2) << print(step);
  }
}

TEST(RingBroken, VerifierSeesAnyOneStepMissing) {
  const auto ring = ring_all_reduce(std::vector<Rank>{0, 1, 2, 3});
  for (std::size_t i = 0; i < ring->steps.size(); ++i) {
    Schedule broken = *ring;
    broken.steps.erase(broken.steps.begin() + static_cast<std::ptrdiff_t>(i));
    const auto rederived = rederive(broken);
    ASSERT_TRUE(rederived.ok());
    EXPECT_FALSE(verify(*rederived).ok()) << "without step " << i;
  }
}

TEST(RingBroken, RefusesARankTwiceOrOutside) {
  EXPECT_EQ(ring_all_reduce(std::vector<Rank>{0, 1, 1}).error().code, Code::invalid_argument);
  EXPECT_EQ(ring_all_reduce(std::vector<Rank>{0, 3, 1}).error().code, Code::invalid_argument);
  EXPECT_EQ(ring_all_gather(std::vector<Rank>{-1, 0, 1}).error().code, Code::invalid_argument);
  EXPECT_EQ(ring_reduce_scatter(std::vector<Rank>{}).error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace sluice
