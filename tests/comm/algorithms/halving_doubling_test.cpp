#include "comm/algorithms/halving_doubling.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(HalvingDoubling, MeetsTheNearestPartnerFirst) {
  const auto schedule = halving_doubling_all_reduce({Collective::all_reduce, 8, 0, Order::canonical, {}});
  ASSERT_TRUE(schedule.ok());
  for (const Step& step : schedule->steps) {
    if (step.level == 0) {
      EXPECT_EQ(step.from[0].rank ^ step.from[1].rank, 1) << print(step);
    }
    if (step.level == 2) {
      EXPECT_EQ(step.from[0].rank ^ step.from[1].rank, 4) << print(step);
    }
  }
}

TEST(HalvingDoubling, KeepsSumsInScratchOnlyForTheCanonicalOrder) {
  const AlgorithmRequest fast{Collective::all_reduce, 8, 0, Order::fast, {}};
  AlgorithmRequest canonical = fast;
  canonical.order = Order::canonical;
  EXPECT_EQ(halving_doubling_all_reduce(fast)->shape.scratch_chunks, 0);
  EXPECT_EQ(halving_doubling_all_reduce(canonical)->shape.scratch_chunks, 8);
}

TEST(HalvingDoubling, EndsTheHalvingWithEachRanksOwnBlock) {
  const auto schedule = recursive_halving_reduce_scatter({Collective::reduce_scatter, 12, 0, Order::fast, {}});
  ASSERT_TRUE(schedule.ok());
  int finals = 0;
  for (const Step& step : schedule->steps) finals += step.final && step.to[0].buffer == Buffer::output ? 1 : 0;
  EXPECT_EQ(finals, 12);
}

}  // namespace
}  // namespace sluice
