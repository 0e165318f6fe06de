#include "tools/perf/split.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <string>

#include "base/config.h"

namespace sluice::tools {
namespace {

struct SplitWord {
  std::string_view word;
  SplitRule::Kind kind;
};
constexpr std::array<SplitWord, 8> kWords{{{"AND", SplitRule::Kind::bit_and},
                                           {"OR", SplitRule::Kind::bit_or},
                                           {"MOD", SplitRule::Kind::modulo},
                                           {"DIV", SplitRule::Kind::divide},
                                           {"&", SplitRule::Kind::bit_and},
                                           {"|", SplitRule::Kind::bit_or},
                                           {"%", SplitRule::Kind::modulo},
                                           {"/", SplitRule::Kind::divide}}};

// A number of 31 bits, decimal or 0x...
std::optional<std::uint32_t> number(std::string_view text) {
  const bool hexadecimal = text.starts_with("0X");
  if (hexadecimal) text.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size() || value > 0x7fffffff) return std::nullopt;
  return value;
}

// Without blanks, in capitals.
std::string squeezed(std::string_view text) {
  std::string result;
  for (const char one : text)
    if (!std::isspace(static_cast<unsigned char>(one)))
      result += static_cast<char>(std::toupper(static_cast<unsigned char>(one)));
  return result;
}

}  // namespace

int SplitRule::color(Rank rank) const {
  const auto value = static_cast<std::uint32_t>(rank);
  switch (kind) {
    case Kind::bit_and: return static_cast<int>(value & operand);
    case Kind::bit_or: return static_cast<int>(value | operand);
    case Kind::modulo: return static_cast<int>(value % operand);
    case Kind::divide: return static_cast<int>(value / operand);
  }
  return 0;
}

Result<SplitRule> parse_split(std::string_view text) {
  const std::string word = squeezed(text);
  const auto found =
      std::find_if(kWords.begin(), kWords.end(), [&](const SplitWord& one) { return word.starts_with(one.word); });
  const auto operand = found == kWords.end() ? std::nullopt : number(std::string_view(word).substr(found->word.size()));
  if (!operand || (*operand == 0 && (found->kind == SplitRule::Kind::modulo || found->kind == SplitRule::Kind::divide)))
    return Error{Code::invalid_argument, "environment variable NCCL_TESTS_SPLIT is '" + std::string(text) +
                                             "', but must be AND, OR, MOD or DIV (or & | % /) and a number"};
  return SplitRule{found->kind, *operand};
}

Result<std::optional<SplitRule>> read_split() {
  if (const std::string text = environment_variable("NCCL_TESTS_SPLIT"); !text.empty()) {
    SLUICE_TRY_ASSIGN(const SplitRule rule, parse_split(text));
    return std::optional(rule);
  }
  const std::string mask = environment_variable("NCCL_TESTS_SPLIT_MASK");
  if (mask.empty()) return std::optional<SplitRule>();
  const auto operand = number(squeezed(mask));
  if (!operand)
    return Error{Code::invalid_argument,
                 "environment variable NCCL_TESTS_SPLIT_MASK is '" + mask + "', but must be a number such as 3 or 0x7"};
  return std::optional(SplitRule{SplitRule::Kind::bit_and, *operand});
}

}  // namespace sluice::tools
