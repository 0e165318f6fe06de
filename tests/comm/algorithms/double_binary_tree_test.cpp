#include "comm/algorithms/double_binary_tree.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

class DoubleBinaryTree : public testing::TestWithParam<int> {};  // number of ranks
INSTANTIATE_TEST_SUITE_P(Ranks, DoubleBinaryTree, testing::Range(1, 70));

std::size_t at(Rank rank) { return static_cast<std::size_t>(rank); }

TEST_P(DoubleBinaryTree, ReachesEveryRankOverAtMostTwoChildrenEach) {
  for (const bool second : {false, true}) {
    const BinaryTree tree = binary_tree(GetParam(), second);
    for (Rank rank = 0; rank < GetParam(); ++rank) {
      EXPECT_LE(tree.children[at(rank)].size(), 2u);
      Rank up = rank;
      int steps = 0;
      for (; up != tree.root && steps <= GetParam(); ++steps) up = tree.parent[at(up)];
      EXPECT_EQ(up, tree.root);
      EXPECT_LE(steps, std::ceil(std::log2(GetParam() + 1)) + 1);
    }
  }
}

TEST_P(DoubleBinaryTree, HasNoRankInsideBothTreesButForOneOrTwo) {
  const BinaryTree first = binary_tree(GetParam(), false);
  const BinaryTree second = binary_tree(GetParam(), true);
  int inside_both = 0;
  for (Rank rank = 0; rank < GetParam(); ++rank)
    inside_both += !first.children[at(rank)].empty() && !second.children[at(rank)].empty() ? 1 : 0;
  EXPECT_LE(inside_both, 2);
}

TEST_P(DoubleBinaryTree, ListsChildrenBeforeParents) {
  const BinaryTree tree = binary_tree(GetParam(), true);
  std::vector<bool> seen(at(GetParam()));
  for (const Rank rank : tree.bottom_up) {
    for (const Rank child : tree.children[at(rank)]) EXPECT_TRUE(seen[at(child)]);
    seen[at(rank)] = true;
  }
  EXPECT_EQ(tree.bottom_up.size(), at(GetParam()));
}

TEST(DoubleBinaryTreeCost, IsAtMostTwiceTheMessageForEveryRank) {
  for (int ranks = 2; ranks < 200; ++ranks)
    EXPECT_LE(double_binary_tree_all_reduce_cost(ranks, 1).sent_bytes, 2.5) << ranks;
}

}  // namespace
}  // namespace sluice
