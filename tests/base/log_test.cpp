#include "base/log.h"

#include <gtest/gtest.h>

#include "base/assert.h"

namespace sluice {
namespace {

class Log : public testing::Test {
 protected:
  static std::string written(LogLevel limit, LogLevel level, int rank, std::string_view text) {
    const LogLevel before = log_level();
    set_log_level(limit);
    testing::internal::CaptureStderr();
    log(level, rank, text);
    set_log_level(before);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(Log, SaysRankLevelAndText) {
  EXPECT_EQ(written(LogLevel::warn, LogLevel::warn, 3, "slow"), "sluice [rank 3] warn: slow\n");
  EXPECT_EQ(written(LogLevel::debug, LogLevel::info, -1, "up"), "sluice info: up\n");
}

TEST_F(Log, IsSilentBelowItsLevel) {
  EXPECT_EQ(written(LogLevel::warn, LogLevel::info, 0, "up"), "");
  EXPECT_EQ(written(LogLevel::off, LogLevel::error, 0, "bad"), "");
}

TEST(AssertDeathTest, EndsTheProcessWithASentence) {
  EXPECT_DEATH(SLUICE_ASSERT(1 > 2, "one is more than two"),
               "internal error at .*log_test.cpp:[0-9]+: one is more than two");
}

TEST(Assert, EvaluatesItsConditionOnce) {
  int times = 0;
  SLUICE_ASSERT(++times == 1, "once");
  EXPECT_EQ(times, 1);
}

}  // namespace
}  // namespace sluice
