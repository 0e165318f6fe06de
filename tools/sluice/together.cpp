#include "tools/sluice/together.h"

#include <algorithm>
#include <sstream>

#include "base/numbers.h"
#include "comm/algorithms/algorithms.h"
#include "comm/lanes/lane.h"

namespace sluice::tools {
namespace {

Error bad(int line, std::string_view word, const std::string& allowed) {
  return {Code::invalid_argument, "line " + std::to_string(line) + ": '" + std::string(word) + "': " + allowed};
}

// "0-3" or "0,2,5"; nullopt: neither, or a rank twice.
std::optional<std::vector<Rank>> parse_members(std::string_view text) {
  const auto members = parse_number_list(text, ',', kTogetherRanksMax - 1);
  if (!members) return members;
  std::vector<Rank> sorted = *members;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return std::nullopt;
  return members;
}

// The named one, or the first that takes so many ranks.
Result<const Algorithm*> find_algorithm(std::string_view word, int ranks, int line) {
  const std::size_t colon = word.find(':');
  const auto collective = parse_collective(std::string(word.substr(0, colon)));
  if (!collective) return bad(line, word, "must be COLLECTIVE[:ALGORITHM], as in all_reduce:ring");
  std::string names;
  for (const Algorithm& one : all_algorithms()) {
    if (one.collective != *collective || !one.supports(ranks)) continue;
    if (colon == std::string_view::npos || one.name == word.substr(colon + 1)) return &one;
    names += (names.empty() ? "" : " ") + std::string(one.name);
  }
  return bad(line, word, "no algorithm of that name for " + std::to_string(ranks) + " ranks; there are: " + names);
}

class Parser {
 public:
  Status take(const std::string& text) {
    ++line_;
    std::istringstream words(text.substr(0, text.find('#')));
    std::string word;
    if (!(words >> word)) return {};
    if (word == "operation") return take_operation(words);
    if (word == "calls") return take_calls(words);
    return bad(line_, word, "a line begins with operation or calls");
  }

  Together finish() {
    std::vector<bool> spoken(static_cast<std::size_t>(kTogetherRanksMax));
    for (const ComposedThread& thread : all_.threads) spoken[static_cast<std::size_t>(thread.rank)] = true;
    for (Rank rank = 0; rank < kTogetherRanksMax; ++rank) {
      ComposedThread thread{.rank = rank, .calls = {}};
      for (std::size_t i = 0; i < all_.operations.size(); ++i)
        if (is_member(i, rank)) thread.calls.push_back({i, false});
      if (!thread.calls.empty() && !spoken[static_cast<std::size_t>(rank)]) all_.threads.push_back(std::move(thread));
    }
    return std::move(all_);
  }

 private:
  bool is_member(std::size_t operation, Rank rank) const {
    const std::vector<Rank>& members = all_.operations[operation].members;
    return std::find(members.begin(), members.end(), rank) != members.end();
  }

  Status take_operation(std::istringstream& words) {
    std::string name, what, ranks, priority = "normal", more;
    words >> name >> what >> ranks;
    words >> priority >> more;
    if (ranks.empty() || !more.empty())
      return bad(line_, name, "must be: operation NAME COLLECTIVE[:ALGORITHM] RANKS [PRIORITY]");
    if (find(name) || name.back() == '!') return bad(line_, name, "a name is given once, and does not end in '!'");
    if (all_.operations.size() == kTogetherMax) return bad(line_, name, "at most " + std::to_string(kTogetherMax));
    const auto members = parse_members(ranks);
    if (!members)
      return bad(
          line_, ranks,
          "must be ranks from 0 to " + std::to_string(kTogetherRanksMax - 1) + ", each once, as in 0-3 or 0,2,5");
    const auto lane = parse_lane("x:" + priority);
    if (!lane.ok() || lane->weight) return bad(line_, priority, "must be one of control, urgent, normal, bulk");
    const int count = static_cast<int>(members->size());
    SLUICE_TRY_ASSIGN(const Algorithm* const algorithm, find_algorithm(what, count, line_));
    SLUICE_TRY_ASSIGN(const Schedule schedule, algorithm->build({algorithm->collective, count, 0, Order::fast, {}}));
    ComposedOperation made{.name = name, .members = *members, .programs = {}};
    made.priority = static_cast<std::uint8_t>(lane->priority.value_or(Priority::normal));
    for (Rank rank = 0; rank < count; ++rank) {
      SLUICE_TRY_ASSIGN(Program program, lower(schedule, rank, {}));
      made.programs.push_back(std::move(program));
    }
    all_.operations.push_back(std::move(made));
    return {};
  }

  Status take_calls(std::istringstream& words) {
    std::string word;
    words >> word;
    const auto rank = parse_number(word, kTogetherRanksMax - 1);
    if (!rank) return bad(line_, word, "must be a rank from 0 to " + std::to_string(kTogetherRanksMax - 1));
    ComposedThread thread{.rank = *rank, .calls = {}};
    while (words >> word) {
      const bool blocks = word.back() == '!';
      const auto operation = find(word.substr(0, word.size() - (blocks ? 1 : 0)));
      if (!operation) return bad(line_, word, "is no operation of the lines before");
      if (!is_member(*operation, *rank)) return bad(line_, word, "rank " + std::to_string(*rank) + " is not in it");
      thread.calls.push_back({*operation, blocks});
    }
    all_.threads.push_back(std::move(thread));
    return {};
  }

  std::optional<std::size_t> find(const std::string& name) const {
    for (std::size_t i = 0; i < all_.operations.size(); ++i)
      if (all_.operations[i].name == name) return i;
    return std::nullopt;
  }

  int line_ = 0;
  Together all_;
};

}  // namespace

Result<Together> parse_together(std::string_view text) {
  if (text.size() > kTogetherBytesMax)
    return Error{Code::invalid_argument, "more than " + std::to_string(kTogetherBytesMax) + " bytes"};
  Parser parser;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) SLUICE_TRY(parser.take(line));
  Together all = parser.finish();
  if (all.operations.empty()) return Error{Code::invalid_argument, "it has no operation"};
  return all;
}

}  // namespace sluice::tools
