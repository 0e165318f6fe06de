#include "base/numbers.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using Numbers = std::vector<int>;

TEST(NumberList, IsReadInTheOrderThatWasSaid) {
  EXPECT_EQ(parse_number_list("5", ',', 9), Numbers({5}));
  EXPECT_EQ(parse_number_list("2-4+7", '+', 9), Numbers({2, 3, 4, 7}));
  EXPECT_EQ(parse_number_list("7,0-0,2,2", ',', 9), Numbers({7, 0, 2, 2}));
}

TEST(NumberList, IsNotWhatHasAnEmptyOrForeignPartOrIsTooLarge) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "-", "1-", "-1", "3-1", "1-2-3", "1+2", "a", "1a", " 1", "0x1",
                           "10", "8-10", "99999999999999999999"})
    EXPECT_EQ(parse_number_list(text, ',', 9), std::nullopt) << text;
}

}  // namespace
}  // namespace sluice
