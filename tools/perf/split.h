// NCCL_TESTS_SPLIT: several groups that run the collective side by side.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "base/types.h"

namespace sluice::tools {

// The group of rank r is r AND n, r OR n, r MOD n or r DIV n.
struct SplitRule {
  enum class Kind : std::uint8_t { bit_and, bit_or, modulo, divide } kind = Kind::modulo;
  std::uint32_t operand = 1;
  int color(Rank rank) const;
};

// "MOD 2", "DIV 0x4", "%2", "/ 4", "&1", "|3"; words in either case. Errors: invalid_argument.
Result<SplitRule> parse_split(std::string_view text);
// From NCCL_TESTS_SPLIT, else NCCL_TESTS_SPLIT_MASK (an AND); empty: one group.
Result<std::optional<SplitRule>> read_split();

}  // namespace sluice::tools
