// Shares and rates, with a clock that the test turns.
#include "transport/lane_rules.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/rng.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(LaneShare, DividesBytesByWeightWhateverThePieces) {
  constexpr std::array<std::uint32_t, 3> kWeights{1, 2, 4};
  std::array<LaneShare, 3> shares;
  std::array<double, 3> bytes{};
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    std::size_t next = 0;
    for (std::size_t one = 1; one < 3; ++one)
      if (shares[one].moved() < shares[next].moved()) next = one;
    const std::uint64_t piece = 1 + rng.below(100'000);
    shares[next].charge(piece, kWeights[next]);
    bytes[next] += static_cast<double>(piece);
  }
  const double all = bytes[0] + bytes[1] + bytes[2];
  for (std::size_t one = 0; one < 3; ++one) EXPECT_NEAR(bytes[one] / all, kWeights[one] / 7.0, 0.001) << one;
}

TEST(LaneShare, BringsASmallClaimFromTheTimeInWhichItWasIdle) {
  for (const std::uint32_t weight : {1U, 4U}) {
    LaneShare busy, idle;
    busy.charge(1 << 30, 1);
    idle.catch_up(busy.moved(), weight);
    std::uint64_t bytes = 0;
    for (; idle.moved() < busy.moved(); bytes += 1024) idle.charge(1024, weight);
    EXPECT_EQ(bytes, LaneShare::kClaim) << weight;
    idle.catch_up(0, weight);
    EXPECT_EQ(idle.moved(), busy.moved()) << weight;
  }
}

// As a link serves them: each in turn has nothing to send for a moment, and the others go on.
TEST(LaneShare, KeepsItsShareThroughPauses) {
  constexpr std::array<std::uint32_t, 3> kWeights{1, 2, 4};
  std::array<LaneShare, 3> shares;
  std::array<double, 3> bytes{};
  std::array<int, 3> away{};  // pieces that others move until it is back
  Rng rng(2);
  for (int i = 0; i < 20'000; ++i) {
    std::size_t next = 3;
    for (std::size_t one = 0; one < 3; ++one) {
      if (away[one] > 0) continue;
      if (next == 3 || shares[one].moved() < shares[next].moved()) next = one;
    }
    const std::uint64_t served = next == 3 ? 0 : shares[next].moved();
    for (int& pause : away) pause = std::max(pause - 1, 0);
    if (next == 3) continue;
    shares[next].charge(8192, kWeights[next]);
    bytes[next] += 8192;
    for (std::size_t one = 0; one < 3; ++one)
      if (away[one] == 1) shares[one].catch_up(served, kWeights[one]);
    if (rng.below(8) == 0) away[next] = 1 + static_cast<int>(rng.below(4));
  }
  const double all = bytes[0] + bytes[1] + bytes[2];
  for (std::size_t one = 0; one < 3; ++one) EXPECT_NEAR(bytes[one] / all, kWeights[one] / 7.0, 0.005) << one;
}

TEST(TokenBucket, LetsItsRateThroughHoweverOftenItIsAsked) {
  for (const Nanoseconds step : {Nanoseconds(100), Nanoseconds(10us), Nanoseconds(3ms)}) {
    TokenBucket bucket(100'000'000, 100'000);
    Nanoseconds now = 1s;
    const Nanoseconds begin = now;
    ASSERT_TRUE(bucket.any(now));
    bucket.spend(100'000, now);
    double passed = 0;
    for (; now < begin + 1s; now += step)
      while (bucket.any(now)) {
        bucket.spend(10'000, now);
        passed += 10'000;
      }
    const double limit =
        step > 1ms ? 100'000 / std::chrono::duration<double>(step).count() : 100e6;  // the burst is lost
    EXPECT_NEAR(passed, std::min(limit, 100e6), 1e6) << step.count();
  }
}

TEST(TokenBucket, SaysHowLongUntilSomethingIsLeft) {
  TokenBucket bucket(1'000'000, 1000);
  Nanoseconds now = 1s;
  bucket.spend(3000, now);  // 1000 were there
  const Nanoseconds wait = bucket.wait(now);
  EXPECT_NEAR(static_cast<double>(wait.count()), 2e6, 2e3);
  EXPECT_FALSE(bucket.any(now + wait - 2us));
  EXPECT_TRUE(bucket.any(now + wait + 1us));
}

TEST(TokenBucket, AGuaranteeForgetsWhatWasMoreThanOneBurst) {
  TokenBucket bucket(1'000'000, 1000);
  Nanoseconds now = 1s;
  for (int i = 0; i < 100; ++i) bucket.spend_of_guarantee(1'000'000, now);
  EXPECT_FALSE(bucket.any(now));
  EXPECT_TRUE(bucket.any(now + 1001us));
}

}  // namespace
}  // namespace sluice
