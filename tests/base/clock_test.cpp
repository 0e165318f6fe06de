#include "base/clock.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
