// The tree's shape under every pattern of losses (small jobs) and random ones (large jobs): connected, without circles.
#include "comm/bootstrap/tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "comm/bootstrap/flood_log.h"

namespace sluice {
namespace {

// Every present rank reaches the lowest present one by parents, and children() is the inverse of parent().
void expect_tree(const TreeShape& shape) {
  Rank root = 0;
  while (root < shape.ranks() && !shape.present(root)) ++root;
  std::vector<std::vector<Rank>> children(static_cast<std::size_t>(shape.ranks()));
  for (Rank rank = 0; rank < shape.ranks(); ++rank) {
    if (!shape.present(rank)) continue;
    const auto parent = shape.parent(rank);
    ASSERT_EQ(parent.has_value(), rank != root) << rank;
    if (parent) {
      ASSERT_TRUE(shape.present(*parent)) << rank;
      children[static_cast<std::size_t>(*parent)].push_back(rank);
    }
    int hops = 0;
    for (auto up = shape.parent(rank); up; up = shape.parent(*up)) ASSERT_LT(++hops, shape.ranks());
  }
  for (Rank rank = 0; rank < shape.ranks(); ++rank)
    EXPECT_TRUE(!shape.present(rank) || shape.children(rank) == children[static_cast<std::size_t>(rank)]) << rank;
}

TEST(TreeShape, IsATreeUnderEveryPatternOfLosses) {
  for (int ranks = 1; ranks <= 10; ++ranks)
    for (int gone = 0; gone < (1 << ranks) - 1; ++gone) {
      TreeShape shape(ranks);
      for (Rank rank = 0; rank < ranks; ++rank)
        if ((gone >> rank & 1) != 0) shape.remove(rank, Presence::lost);
      expect_tree(shape);
    }
}

TEST(TreeShape, IsATreeUnderRandomLossesOfLargeJobs) {
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    const int ranks = 100 + static_cast<int>(rng.below(400));
    TreeShape shape(ranks);
    const double share = rng.uniform();
    for (Rank rank = 0; rank < ranks - 1; ++rank)
      if (rng.chance(share)) shape.remove(rank, rng.chance(0.5) ? Presence::left : Presence::lost);
    expect_tree(shape);
  }
}

TEST(TreeShape, IsALogDeepHeapWhenWhole) {
  const TreeShape shape(1000);
  int depth = 0;
  for (auto up = shape.parent(999); up; up = shape.parent(*up)) ++depth;
  EXPECT_EQ(depth, 9);
  EXPECT_EQ(shape.children(3), (std::vector<Rank>{7, 8}));
}

TEST(TreeShape, OneThatLeftMayTurnOutLostButNotTheOtherWayRound) {
  TreeShape shape(3);
  EXPECT_TRUE(shape.remove(1, Presence::left));
  EXPECT_FALSE(shape.remove(1, Presence::left));
  EXPECT_TRUE(shape.remove(1, Presence::lost));
  EXPECT_FALSE(shape.remove(1, Presence::left));
  EXPECT_EQ(shape.presence(1), Presence::lost);
}

SharedBytes frame_of(std::size_t bytes) { return std::make_shared<const Bytes>(bytes); }

TEST(FloodLog, DropsWhatItHasSeenPerOrigin) {
  FloodLog log(2);
  EXPECT_EQ(log.next_sequence(0), 1u);
  EXPECT_TRUE(log.add(0, 1, frame_of(1)));
  EXPECT_FALSE(log.add(0, 1, frame_of(1)));
  EXPECT_TRUE(log.add(1, 1, frame_of(1)));
  EXPECT_TRUE(log.add(0, 3, frame_of(1)));
  EXPECT_FALSE(log.add(0, 2, frame_of(1)));
  EXPECT_EQ(log.next_sequence(0), 4u);
  EXPECT_EQ(log.frames().size(), 3u);
}

TEST(FloodLog, ForgetsTheOldestBeyondItsBound) {
  FloodLog log(1, 100);
  for (std::uint64_t sequence = 1; sequence <= 50; ++sequence) EXPECT_TRUE(log.add(0, sequence, frame_of(10)));
  EXPECT_EQ(log.frames().size(), 10u);
  EXPECT_FALSE(log.add(0, 1, frame_of(10))) << "forgotten frames are still known to have been seen";
}

}  // namespace
}  // namespace sluice
