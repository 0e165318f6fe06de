// Which experts are chosen, ties included, and what the balance loss is worth.
#include "layers/router.h"

#include <gtest/gtest.h>

#include <numeric>

#include "layers/expert_exchange.h"
#include "tests/layers/support/finite_difference.h"

namespace sluice {
namespace {

// A token per row of `logits`: the weight is the identity, so x is the logits.
struct Routed {
  test::OwnWeight identity;
  Router<double> router;
  Router<double>::Saved saved;

  Routed(const std::vector<std::vector<double>>& logits, int top_k)
      : identity(static_cast<Index>(logits[0].size()), static_cast<Index>(logits[0].size()), 1),
        router(identity.weight(), top_k) {
    identity.value.fill(0);
    for (Index e = 0; e < identity.value.rows(); ++e) identity.value.row(e)[e] = 1;
    Matrix<double> x(static_cast<Index>(logits.size()), identity.value.rows());
    for (std::size_t t = 0; t < logits.size(); ++t)
      std::copy(logits[t].begin(), logits[t].end(), x.row(static_cast<Index>(t)));
    router.forward(x, saved);
  }
};

TEST(Router, TakesTheMostProbableFirstAndTheLowestIndexOfEquals) {
  const Routed r({{1, 3, 2, 3}, {5, 5, 5, 5}, {0, 0, 7, 0}}, 2);
  EXPECT_EQ(r.saved.routing.expert, (std::vector<int>{1, 3, 0, 1, 2, 0}));
  EXPECT_EQ(r.saved.routing.counts, (std::vector<std::int64_t>{2, 2, 1, 1}));
}

TEST(Router, ChoosesWhatAStableSortWouldChoose) {
  Rng rng(11);
  for (int round = 0; round < 200; ++round) {
    const int experts = 1 + static_cast<int>(rng.below(9));
    const int top_k = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(experts)));
    std::vector<double> logits;
    for (int e = 0; e < experts; ++e) logits.push_back(static_cast<double>(rng.below(4)));  // many ties
    std::vector<int> want(static_cast<std::size_t>(experts));
    std::iota(want.begin(), want.end(), 0);
    std::stable_sort(want.begin(), want.end(),
                     [&](int a, int b) { return logits[std::size_t(a)] > logits[std::size_t(b)]; });
    want.resize(static_cast<std::size_t>(top_k));
    EXPECT_EQ(Routed({logits}, top_k).saved.routing.expert, want) << "round " << round;
  }
}

TEST(Router, WeightsOfSeveralExpertsSumToOneAndOneExpertsWeightIsItsProbability) {
  const Routed two({{1, 3, 2, 0}}, 2);
  EXPECT_NEAR(two.saved.weights.row(0)[0] + two.saved.weights.row(0)[1], 1, 1e-15);
  EXPECT_NEAR(two.saved.weights.row(0)[0] / two.saved.weights.row(0)[1], std::exp(1.0), 1e-12);
  const Routed one({{1, 3, 2, 0}}, 1);
  EXPECT_NEAR(one.saved.weights.row(0)[0], one.saved.probabilities.row(0)[1], 0);
}

TEST(Router, ChoosesValidExpertsEvenOfNumbersThatAreNone) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const Routed r({{none, none, none}}, 2);
  EXPECT_EQ(r.saved.routing.expert, (std::vector<int>{0, 1}));
}

TEST(BalanceLoss, IsTheFactorWhenEverythingIsEven) {
  const Routed r({{9, 0, 0, 0}, {0, 9, 0, 0}, {0, 0, 9, 0}, {0, 0, 0, 9}}, 1);
  // Each expert has one of four tokens, and a quarter of the probability: alpha * E * 4 * (1/4 * 1/4) = alpha.
  EXPECT_NEAR(r.router.balance_loss(r.saved, {0.5, 4, &r.saved.routing.counts}), 0.5, 1e-12);
}

TEST(BalanceLoss, IsTheSumOfTheRanksShares) {
  Rng rng(3);
  std::vector<std::vector<double>> all(6, std::vector<double>(5));
  for (auto& token : all)
    for (double& x : token) x = 3 * rng.uniform();
  const Routed whole(all, 2), first({all.begin(), all.begin() + 2}, 2), second({all.begin() + 2, all.end()}, 2);
  const auto& counts = whole.saved.routing.counts;
  EXPECT_NEAR(first.router.balance_loss(first.saved, {0.1, 6, &counts}) +
                  second.router.balance_loss(second.saved, {0.1, 6, &counts}),
              whole.router.balance_loss(whole.saved, {0.1, 6, &counts}), 1e-15);
}

TEST(ExpertOwnership, CoversEveryExpertOnceForAnyNumberOfRanks) {
  for (int experts = 0; experts <= 20; ++experts)
    for (int ranks = 1; ranks <= 25; ++ranks) {
      std::int64_t next = 0;
      for (int r = 0; r < ranks; ++r) {
        const Part part = part_of(experts, r, ranks);
        EXPECT_EQ(part.first, next);
        EXPECT_LE(part.count, (experts + ranks - 1) / ranks);
        next += part.count;
      }
      EXPECT_EQ(next, experts);
    }
}

TEST(ExpertExchangeAlone, PutsSlotsInOrderOfExpertThenSlot) {
  Communicator alone;
  ExpertExchange<double> exchange(alone, 3, 1);
  const Routing routing{3, 2, {2, 0, 0, 2, 2, 0}, {3, 0, 3}};
  DispatchPlan plan;
  ASSERT_TRUE(exchange.plan(routing, plan).ok());
  EXPECT_EQ(plan.row_of_slot, (std::vector<Index>{3, 0, 1, 4, 5, 2}));
  EXPECT_EQ(plan.expert_begin, (std::vector<Index>{0, 3, 3, 6}));
  EXPECT_TRUE(plan.moves.empty());
}

}  // namespace
}  // namespace sluice
