#include "comm/algorithms/binomial_tree.h"

#include <gtest/gtest.h>

#include "comm/verify/verify.h"

namespace sluice {
namespace {

TEST(BinomialTree, ReducesAtItsRootInFastOrderAndByRankInCanonicalOrder) {
  AlgorithmRequest request{Collective::reduce, 6, 4, Order::fast, {}};
  EXPECT_EQ(binomial_tree_reduce(request)->steps.back().executor, 4);
  request.order = Order::canonical;
  const auto canonical = binomial_tree_reduce(request);
  EXPECT_EQ(canonical->steps.back().executor, 0);
  EXPECT_EQ(canonical->steps.back().to[0], (Place{4, Buffer::output, 0}));
}

TEST(BinomialTree, BroadcastsInLogarithmicallyManyLevels) {
  EXPECT_EQ(binomial_tree_broadcast({Collective::broadcast, 64, 5, Order::fast, {}})->levels, 6);
}

TEST(BinomialTreeBroken, VerifierSeesAnInnerSumRounded) {
  auto schedule = binomial_tree_all_reduce({Collective::all_reduce, 4, 0, Order::canonical, {}});
  ASSERT_EQ(verify(*schedule)->order, OrderClass::canonical);
  // The same tree, but an inner sum passes through an output.
  for (Step& step : schedule->steps) {
    for (Place& place : step.from)
      if (place.rank == 2 && place.buffer == Buffer::scratch) place.buffer = Buffer::output;
    for (Place& place : step.to)
      if (place.rank == 2 && place.buffer == Buffer::scratch) place.buffer = Buffer::output;
  }
  const auto rounded = rederive(*schedule);
  ASSERT_TRUE(rounded.ok()) << rounded.error().text;
  EXPECT_EQ(verify(*rounded)->order, OrderClass::fixed);
}

}  // namespace
}  // namespace sluice
