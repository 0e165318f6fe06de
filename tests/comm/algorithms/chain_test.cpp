#include "comm/algorithms/chain.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Chain, PassesOnFromRankToRankFromTheRoot) {
  const auto schedule = chain_broadcast({Collective::broadcast, 5, 3, Order::fast, {}});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->levels, 4);
  for (const Step& step : schedule->steps)
    if (step.from[0].rank != step.to[0].rank) {
      EXPECT_EQ(step.to[0].rank, (step.from[0].rank + 1) % 5) << print(step);
    }
}

TEST(Chain, EndsItsSumAtTheRoot) {
  const auto schedule = chain_reduce({Collective::reduce, 5, 3, Order::fast, {}});
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->steps.back().to[0], (Place{3, Buffer::output, 0}));
  EXPECT_TRUE(schedule->steps.back().final);
}

}  // namespace
}  // namespace sluice
