// Whole numbers in words.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace sluice {

// 0..max; nullopt: it is no such number, or more than one.
std::optional<int> parse_number(std::string_view text, int max);

// "2-4+7" is 2, 3, 4, 7, in the order that was said, where '+' is the separator; each number is 0..max. nullopt: it is no such list.
std::optional<std::vector<int>> parse_number_list(std::string_view text, char separator, int max);

}  // namespace sluice
