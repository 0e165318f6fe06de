// Who sleeps is woken, and who has woken is left alone.
#include "comm/executor/alarms.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>

namespace sluice::detail {
namespace {

bool sounds(const Alarms::Sleeper& sleeper) {
  pollfd one{sleeper.fd(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(Alarms, SoundForAllThatSleep) {
  Alarms alarms;
  alarms.sound();
  const Alarms::Sleeper first(alarms), second(alarms);
  EXPECT_FALSE(sounds(first) || sounds(second)) << "it sounded before they slept";
  alarms.sound();
  EXPECT_TRUE(sounds(first) && sounds(second));
}

// One that was woken and got no core yet must still be woken, and must not keep others awake.
TEST(Alarms, DoNotSoundAgainForWhoSleepsAgain) {
  Alarms alarms;
  const Alarms::Sleeper slow(alarms);
  for (int i = 0; i < 3; ++i) {
    const Alarms::Sleeper quick(alarms);
    EXPECT_FALSE(sounds(quick)) << i;
    if (i == 0) alarms.sound();
  }
  EXPECT_TRUE(sounds(slow));
}

TEST(Alarms, AreUsedAgainSilent) {
  Alarms alarms;
  int fd = -1;
  {
    const Alarms::Sleeper one(alarms);
    fd = one.fd();
    alarms.sound();
  }
  const Alarms::Sleeper next(alarms);
  EXPECT_EQ(next.fd(), fd);
  EXPECT_FALSE(sounds(next));
}

}  // namespace
}  // namespace sluice::detail
