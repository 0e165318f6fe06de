#include "base/rng.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace sluice {
namespace {

TEST(Rng, GivesTheNumbersOfThePublishedGenerator) {
  // The first outputs of SplitMix64 for seed 1234567, as its authors' reference code prints them.
  Rng rng(1234567);
  EXPECT_EQ(rng.next(), 6457827717110365317u);
  EXPECT_EQ(rng.next(), 3203168211198807973u);
  EXPECT_EQ(rng.next(), 9817491932198370423u);
}

TEST(Rng, RepeatsItselfFromASeed) {
  Rng a(7);
  Rng b(7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.next(), b.next());
}

TEST(Rng, StaysBelowItsBoundAndReachesEveryNumber) {
  Rng rng(1);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = rng.below(7);
    EXPECT_LT(value, 7u);
    seen.insert(value);
  }
  EXPECT_EQ(seen.size(), 7u);
  EXPECT_EQ(rng.below(1), 0u);
}

TEST(Rng, IsEvenlySpread) {
  Rng rng(2);
  std::array<int, 10> bins{};
  constexpr int kDraws = 100'000;
  for (int i = 0; i < kDraws; ++i) {
    const double value = rng.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    ++bins.at(static_cast<std::size_t>(value * 10));
  }
  double chi_squared = 0;
  for (const int bin : bins) chi_squared += (bin - kDraws / 10.0) * (bin - kDraws / 10.0) / (kDraws / 10.0);
  EXPECT_LT(chi_squared, 27.9);  // 9 degrees of freedom: 1 seed in 1000 would exceed it, this one does not
}

TEST(Rng, ChanceIsNeverAtZeroAndAlwaysAtOne) {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(rng.chance(0));
    EXPECT_TRUE(rng.chance(1));
  }
}

TEST(Mix64, IsOneToOneOnASampleAndKnownAtCompileTime) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t i = 0; i < 10'000; ++i) seen.insert(mix64(i));
  EXPECT_EQ(seen.size(), 10'000u);
  static_assert(mix64(0) == 0xe220a8397b1dcdafu);
}

}  // namespace
}  // namespace sluice
