#include "base/numbers.h"

#include <charconv>

namespace sluice {

std::optional<int> parse_number(std::string_view text, int max) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0 || number > max) return std::nullopt;
  return number;
}

std::optional<std::vector<int>> parse_number_list(std::string_view text, char separator, int max) {
  std::vector<int> numbers;
  for (bool more = true; more;) {
    const std::size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    const std::size_t dash = part.find('-');
    const auto first = parse_number(part.substr(0, dash), max);
    const auto last = dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1), max);
    if (!first || !last || *first > *last) return std::nullopt;
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + 1);
  }
  return numbers;
}

}  // namespace sluice
