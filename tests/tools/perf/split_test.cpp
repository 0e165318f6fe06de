#include "tools/perf/split.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::tools {
namespace {

std::vector<int> colors(std::string_view text) {
  const auto rule = parse_split(text);
  if (!rule.ok()) return {};
  std::vector<int> all;
  for (Rank rank = 0; rank < 6; ++rank) all.push_back(rule->color(rank));
  return all;
}

TEST(Split, WordsAndSigns) {
  EXPECT_EQ(colors("MOD 2"), (std::vector{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(colors("%2"), colors("mod2"));
  EXPECT_EQ(colors("DIV 3"), (std::vector{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(colors("/ 0x3"), colors("DIV 3"));
  EXPECT_EQ(colors("AND 4"), (std::vector{0, 0, 0, 0, 4, 4}));
  EXPECT_EQ(colors("&4"), colors("AND 0x4"));
  EXPECT_EQ(colors("OR 1"), (std::vector{1, 1, 3, 3, 5, 5}));
  EXPECT_EQ(colors("|1"), colors("or 1"));
}

TEST(Split, WhatCannotBeRightIsRefused) {
  for (const char* text : {"MOD 0", "DIV 0", "XOR 2", "MOD", "MOD two", "MOD -2", "2", ""})
    EXPECT_EQ(parse_split(text).error().code, Code::invalid_argument) << text;
}

}  // namespace
}  // namespace sluice::tools
