#include "base/clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

TEST(VirtualClock, MovesOnlyForwardAndOnlyWhenTold) {
  VirtualClock clock;
  EXPECT_EQ(clock.now(), Nanoseconds(0));
  clock.advance(Nanoseconds(5));
  clock.advance_to(Nanoseconds(3));
  EXPECT_EQ(clock.now(), Nanoseconds(5));
  clock.advance_to(Nanoseconds(9));
  EXPECT_EQ(clock.now(), Nanoseconds(9));
}

TEST(RealClock, NeverGoesBack) {
  Nanoseconds last = RealClock::instance().now();
  for (int i = 0; i < 1000; ++i) {
    const Nanoseconds now = RealClock::instance().now();
    EXPECT_GE(now, last);
    last = now;
  }
}

// A thread that is held up between two looks measures nonsense, hence the best of several.
TEST(RealClock, TicksPassAtTheRateThatItStates) {
  const RealClock& clock = RealClock::instance();
  double best = 1;
  for (int attempt = 0; attempt < 10 && best > 0.01; ++attempt) {
    const Nanoseconds begin = clock.now();
    const std::uint64_t ticks = clock.ticks();
    while (clock.now() - begin < std::chrono::milliseconds(10)) continue;
    const double by_ticks = static_cast<double>(clock.ticks() - ticks) * clock.seconds_per_tick();
    const double by_clock = std::chrono::duration<double>(clock.now() - begin).count();
    best = std::min(best, std::abs(by_ticks / by_clock - 1));
  }
  EXPECT_LT(best, 0.01);
}

}  // namespace
}  // namespace sluice
