#include "comm/verify/symbols.h"

#include <algorithm>
#include <bit>

#include "base/rng.h"

namespace sluice {
namespace {

// The canonical tree over `count` values has so many in its left half: the largest power of two below `count`.
int left_half(int count) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(count) - 1)); }

}  // namespace

std::uint64_t Symbols::hash(const Node& node, std::span<const Symbol> sources) const {
  std::uint64_t mixed = mix64((static_cast<std::uint64_t>(static_cast<std::uint32_t>(node.chunk)) << 32) |
                              static_cast<std::uint32_t>(node.rank));
  mixed = mix64(mixed ^ node.rounded ^ (static_cast<std::uint64_t>(node.tree) << 40));
  for (const Symbol source : sources) mixed = mix64(mixed + source);
  return mixed;
}

bool Symbols::same(const Node& a, std::span<const Symbol> a_sources, const Node& b) const {
  return a.chunk == b.chunk && a.rank == b.rank && a.rounded == b.rounded && a.tree == b.tree &&
         a_sources.size() == b.source_count &&
         std::equal(a_sources.begin(), a_sources.end(), sources_.begin() + b.sources);
}

void Symbols::grow_table() {
  table_.assign(std::max<std::size_t>(256, table_.size() * 2), kNoValue);
  const std::size_t mask = table_.size() - 1;
  for (Symbol value = 1; value < nodes_.size(); ++value) {
    const Node& node = nodes_[value];
    std::size_t at = hash(node, std::span(sources_).subspan(node.sources, node.source_count)) & mask;
    while (table_[at] != kNoValue) at = (at + 1) & mask;
    table_[at] = value;
  }
}

std::pair<Symbol, bool> Symbols::intern(const Node& node, std::span<const Symbol> sources) {
  if (2 * (nodes_.size() + 1) > table_.size()) grow_table();
  const std::size_t mask = table_.size() - 1;
  std::size_t at = hash(node, sources) & mask;
  for (; table_[at] != kNoValue; at = (at + 1) & mask)
    if (same(node, sources, nodes_[table_[at]])) return {table_[at], false};
  const Symbol value = static_cast<Symbol>(nodes_.size());
  table_[at] = value;
  Node& added = nodes_.emplace_back(node);
  added.sources = static_cast<std::uint32_t>(sources_.size());
  added.source_count = static_cast<std::uint32_t>(sources.size());
  sources_.insert(sources_.end(), sources.begin(), sources.end());
  grow_set();
  return {value, true};
}

Symbol Symbols::leaf(Rank rank, int chunk) {
  Node node;
  node.chunk = chunk;
  node.rank = rank;
  node.first = rank;
  node.count = 1;
  const auto [value, added] = intern(node, {});
  if (added) set(value)[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64);
  return value;
}

Result<Symbol> Symbols::combine(std::span<const Symbol> sources, Tree tree) {
  for (const Symbol source : sources)
    if (source == kNoValue) return Error{Code::invalid_argument, "a source was never written"};
  if (sources.size() == 1) return sources[0];

  Node node;
  node.chunk = nodes_[sources[0]].chunk;
  node.tree = sources.size() == 2 ? Tree::chain : tree;  // of two there is only one tree
  for (const Symbol source : sources)
    if (nodes_[source].chunk != node.chunk)
      return Error{Code::invalid_argument,
                   "different chunks are summed: " + describe(sources[0]) + " and " + describe(source)};
  const auto [value, added] = intern(node, sources);
  if (!added) return value;
  for (const Symbol source : sources)
    for (std::size_t word = 0; word < words_; ++word) {
      const std::uint64_t twice = set(value)[word] & set(source)[word];
      if (twice != 0) {
        const std::size_t rank = word * 64 + static_cast<std::size_t>(std::countr_zero(twice));
        return Error{Code::invalid_argument, "the input of rank " + std::to_string(rank) +
                                                 " is counted twice, the second time in " + describe(source)};
      }
      set(value)[word] |= set(source)[word];
    }
  const Span span = fold(sources, tree);
  nodes_[value].first = span.first;
  nodes_[value].count = span.count;
  return value;
}

Symbol Symbols::stored(Symbol value, Buffer buffer) {
  if (buffer == Buffer::scratch || value == kNoValue || nodes_[value].rank >= 0 || nodes_[value].rounded != kNoValue)
    return value;
  Node node;
  node.chunk = nodes_[value].chunk;
  node.rounded = value;
  node.first = nodes_[value].first;
  node.count = nodes_[value].count;
  const auto [rounded, added] = intern(node, {});
  if (added) std::copy_n(set(value), words_, set(rounded));
  return rounded;
}

Symbols::Span Symbols::canonical_span(Symbol value) const {
  const Node& node = nodes_[value];
  return node.rounded != kNoValue ? Span{} : Span{node.first, node.count};
}

Symbols::Span Symbols::join(Span left, Span right) {
  if (left.count == 0 || right.count == 0 || right.first != left.first + left.count) return {};
  if (left.count != left_half(left.count + right.count)) return {};
  return {left.first, left.count + right.count};
}

Symbols::Span Symbols::fold(std::span<const Symbol> sources, Tree tree) const {
  if (sources.size() == 1) return canonical_span(sources[0]);
  const std::size_t left = tree == Tree::canonical
                               ? static_cast<std::size_t>(left_half(static_cast<int>(sources.size())))
                               : sources.size() - 1;
  return join(fold(sources.first(left), tree), fold(sources.subspan(left), tree));
}

bool Symbols::is_whole_sum(Symbol value, int chunk) const {
  if (value == kNoValue || nodes_[value].chunk != chunk) return false;
  std::size_t ranks = 0;
  for (std::size_t word = 0; word < words_; ++word) ranks += static_cast<std::size_t>(std::popcount(set(value)[word]));
  return ranks == static_cast<std::size_t>(shape_.ranks);
}

bool Symbols::is_leaf(Symbol value, Rank rank, int chunk) const {
  return value != kNoValue && nodes_[value].rank == rank && nodes_[value].chunk == chunk;
}

bool Symbols::is_canonical(Symbol value) const {
  return value != kNoValue && nodes_[value].first == 0 && nodes_[value].count == shape_.ranks;
}

std::string Symbols::describe(Symbol value) const {
  if (value == kNoValue) return "nothing";
  const Node& node = nodes_[value];
  const std::string place = "in." + std::to_string(node.chunk);
  if (node.rank >= 0) return "r" + std::to_string(node.rank) + "." + place;
  std::string ranks;
  const auto holds = [&](Rank rank) {
    return rank < shape_.ranks && (set(value)[static_cast<std::size_t>(rank) / 64] >> (rank % 64) & 1) != 0;
  };
  for (Rank rank = 0; rank < shape_.ranks; ++rank) {
    if (!holds(rank)) continue;
    Rank last = rank;
    while (holds(last + 1)) ++last;
    ranks += (ranks.empty() ? "" : ",") + std::to_string(rank) + (last > rank ? "-" + std::to_string(last) : "");
    rank = last;
  }
  return "the sum of " + place + " of ranks " + ranks;
}

}  // namespace sluice
