#include "comm/algorithms/direct.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(Direct, OneShotIsOneMomentAtOneLevel) {
  const auto one_shot = one_shot_all_reduce({Collective::all_reduce, 5, 0, Order::canonical, {}});
  ASSERT_TRUE(one_shot.ok());
  ASSERT_EQ(one_shot->steps.size(), 5u);
  for (const Step& step : one_shot->steps) {
    EXPECT_EQ(step.moment, 0);
    EXPECT_EQ(step.level, 0);
    EXPECT_EQ(step.from.size(), 5u);
    EXPECT_EQ(step.tree, Tree::canonical);
    EXPECT_TRUE(step.final);
    EXPECT_EQ(step.leaf, std::vector<bool>(5, true));
  }
}

TEST(Direct, TwoShotTakesOneLevelInWhichEachRankSumsOneChunkForAll) {
  const auto two_shot = two_shot_all_reduce({Collective::all_reduce, 9, 0, Order::fast, {}});
  EXPECT_EQ(two_shot->levels, 1);
  ASSERT_EQ(two_shot->steps.size(), 9u);
  for (const Step& step : two_shot->steps) EXPECT_EQ(step.to.size(), 9u) << print(step);
}

TEST(Direct, PairwiseReadsFromAnotherRankAtEachDistance) {
  const int ranks = 6;
  const auto pairwise = pairwise_all_to_all({Collective::all_to_all, ranks, 0, Order::fast, {}});
  for (int distance = 0; distance < ranks; ++distance) {
    std::set<Rank> read;
    for (int i = 0; i < ranks; ++i)
      read.insert(pairwise->steps[static_cast<std::size_t>(distance * ranks + i)].from[0].rank);
    EXPECT_EQ(read.size(), static_cast<std::size_t>(ranks)) << "distance " << distance;
  }
}

TEST(Direct, OneRankCopiesItsInputAsTheFinalSum) {
  const auto one = one_shot_all_reduce({Collective::all_reduce, 1, 0, Order::fast, {}});
  ASSERT_EQ(one->steps.size(), 1u);
  EXPECT_TRUE(one->steps[0].final);
  EXPECT_EQ(one->steps[0].leaf, std::vector<bool>{true});
}

}  // namespace
}  // namespace sluice
