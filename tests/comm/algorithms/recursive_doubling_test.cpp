#include "comm/algorithms/recursive_doubling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/verify/verify.h"

namespace sluice {
namespace {

TEST(RecursiveDoubling, ExchangesWithBothPartnersAtOnceAndLowerRankFirst) {
  const auto schedule = recursive_doubling_all_reduce({Collective::all_reduce, 8, 0, Order::canonical, {}});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->levels, 3);
  for (const Step& step : schedule->steps) EXPECT_LT(step.from[0].rank, step.from[1].rank) << print(step);
}

TEST(RecursiveDoublingBroken, VerifierSeesSummandsSwapped) {
  auto schedule = recursive_doubling_all_reduce({Collective::all_reduce, 8, 0, Order::canonical, {}});
  ASSERT_TRUE(schedule.ok());
  ASSERT_EQ(verify(*schedule)->order, OrderClass::canonical);
  // Everywhere alike: still one sum at all ranks, but no longer the canonical one.
  for (Step& step : schedule->steps) std::swap(step.from[0], step.from[1]);
  EXPECT_EQ(verify(*schedule)->order, OrderClass::fixed);
  // At one rank only: that rank's bits could differ.
  std::swap(schedule->steps.back().from[0], schedule->steps.back().from[1]);
  EXPECT_FALSE(verify(*schedule).ok());
}

}  // namespace
}  // namespace sluice
