#include "examples/text/entropy.h"

#include <cmath>
#include <vector>

namespace sluice::examples {
namespace {

double entropy_of(std::span<const std::uint64_t> counts) {
  double total = 0;
  for (const std::uint64_t count : counts) total += static_cast<double>(count);
  double sum = 0;
  for (const std::uint64_t count : counts)
    if (count > 0) sum -= static_cast<double>(count) * std::log(static_cast<double>(count) / total);
  return total > 0 ? sum / total : 0;
}

}  // namespace

Entropy entropy(std::span<const std::uint8_t> text) {
  if (text.size() < 2) return {};
  std::vector<std::uint64_t> single(256, 0), pair(256 * 256, 0), first(256, 0);
  for (const std::uint8_t byte : text) ++single[byte];
  for (std::size_t i = 1; i < text.size(); ++i) {
    ++pair[std::size_t{text[i - 1]} * 256 + text[i]];
    ++first[text[i - 1]];
  }
  return {entropy_of(single), entropy_of(pair) - entropy_of(first)};  // H(b | a) = H(a, b) - H(a)
}

}  // namespace sluice::examples
