#include "comm/algorithms/bruck.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice {
namespace {

TEST(Bruck, MovesABlockOnceForEverySetBitOfItsDistance) {
  const auto schedule = bruck_all_to_all({Collective::all_to_all, 8, 0, Order::fast, {}});
  ASSERT_TRUE(schedule.ok());
  std::map<int, int> moves;  // between ranks, by distance moved
  for (const Step& step : schedule->steps)
    if (step.from[0].rank != step.to[0].rank) ++moves[(step.to[0].rank - step.from[0].rank + 8) % 8];
  EXPECT_EQ(moves, (std::map<int, int>{{1, 32}, {2, 32}, {4, 32}}));
}

TEST(Bruck, GathersInLogarithmicallyManyLevels) {
  EXPECT_EQ(bruck_all_gather({Collective::all_gather, 16, 0, Order::fast, {}})->levels, 4);
}

}  // namespace
}  // namespace sluice
