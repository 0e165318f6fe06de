// Initial weights depend on seed, name and logical element, never on who holds them.
#include "layers/initial_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "layers/expert_exchange.h"
#include "layers/parameters.h"

namespace sluice {
namespace {

// Experts first..first+count-1 of five, behind a tensor that every rank holds.
Parameters<float> rank_with(Part experts) {
  Parameters<float> parameters;
  parameters.begin_stage();
  parameters.add({"router", 5, 4, Placement::replicated, 1});
  for (std::int64_t e = experts.first; e < experts.first + experts.count; ++e)
    parameters.add({"experts." + std::to_string(e), 3, 4, Placement::by_expert, 1});
  parameters.allocate(9);
  return parameters;
}

TEST(InitialValues, OfAnExpertAreTheSameWhoeverOwnsIt) {
  const Parameters<float> all = rank_with({0, 5});
  for (int ranks = 1; ranks <= 7; ++ranks)
    for (int r = 0; r < ranks; ++r) {
      const Part part = part_of(5, r, ranks);
      const Parameters<float> own = rank_with(part);
      for (std::int64_t e = 0; e < part.count; ++e) {
        const float* here = own[static_cast<std::size_t>(1 + e)].value.data;
        const float* there = all[static_cast<std::size_t>(1 + part.first + e)].value.data;
        EXPECT_TRUE(std::equal(here, here + 12, there))
            << "expert " << part.first + e << " of rank " << r << "/" << ranks;
      }
      EXPECT_TRUE(std::equal(own[0].value.data, own[0].value.data + 20, all[0].value.data));
    }
}

TEST(InitialValues, DifferBySeedNameAndElement) {
  std::set<double> values;
  for (const std::uint64_t seed : {1, 2})
    for (const char* name : {"a", "b", "layers.0.q", "layers.1.q"})
      for (Index element = 0; element < 100; ++element) values.insert(initial_value(seed, name_key(name), element, 1));
  EXPECT_EQ(values.size(), 800u);
}

TEST(InitialValues, HaveTheMeanAndSpreadAskedFor) {
  double sum = 0, squares = 0;
  constexpr Index kMany = 100000;
  for (Index i = 0; i < kMany; ++i) {
    const double x = initial_value(3, name_key("w"), i, 0.02);
    EXPECT_LE(std::abs(x), 0.02 * std::sqrt(3.0));
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kMany, 0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / kMany), 0.02, 2e-4);
}

TEST(InitialValues, OfSpreadZeroAreOnes) {
  Matrix<float> gain(1, 3);
  set_initial_values<float>("gain", 1, 0, gain);
  EXPECT_EQ(gain.row(0)[2], 1.0f);
}

}  // namespace
}  // namespace sluice
