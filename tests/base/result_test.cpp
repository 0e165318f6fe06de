#include "base/result.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>

namespace sluice {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return Error{Code::invalid_argument, "odd"};
  return value / 2;
}

Result<int> quarter(int value) {
  SLUICE_TRY_ASSIGN(const int once, half(value));
  SLUICE_TRY_ASSIGN(const int twice, half(once));
  return twice;
}

Status even(int value) {
  SLUICE_TRY(half(value).status());
  return {};
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_TRUE(half(4).ok());
  EXPECT_EQ(*half(4), 2);
  EXPECT_FALSE(half(3).ok());
  EXPECT_EQ(half(3).error().code, Code::invalid_argument);
  EXPECT_EQ(half(3).error().text, "odd");
}

TEST(Result, TryReturnsTheFirstError) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().text, "odd");
  EXPECT_TRUE(even(2).ok());
  EXPECT_EQ(even(1).code(), Code::invalid_argument);
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(7));
  const std::unique_ptr<int> taken = *std::move(result);
  EXPECT_EQ(*taken, 7);
}

TEST(Result, TextMayBeAValueOfItsOwn) {
  const Result<std::string> text(std::string("fine"));
  EXPECT_EQ(text->size(), 4u);
}

TEST(ResultDeathTest, AnErrorUsedAsAValueEndsTheProcessWithItsText) {
  EXPECT_DEATH((void)*half(3), "invalid_argument: odd");
}

TEST(Status, IsFineUntilToldOtherwise) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status(Code::timeout, "late").text(), "late");
}

TEST(SystemError, NamesWhatFailedAndWhy) {
  const Error error = system_error("open /nowhere", ENOENT);
  EXPECT_EQ(error.code, Code::system);
  EXPECT_EQ(error.text, "open /nowhere: No such file or directory");
}

TEST(Code, EveryCodeHasItsOwnName) {
  for (int a = 0; a <= static_cast<int>(Code::system); ++a) {
    EXPECT_NE(name(static_cast<Code>(a)), "unknown");
    for (int b = 0; b < a; ++b) EXPECT_NE(name(static_cast<Code>(a)), name(static_cast<Code>(b)));
  }
}

}  // namespace
}  // namespace sluice
