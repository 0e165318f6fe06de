// The symbols that proofs compute with: which inputs a value holds, in what tree they were summed, and whether it was rounded
// on the way. Equal values are one number.
//
//   Cost   one entry per different value; a sum costs O(sources x P/64).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/schedule/schedule.h"

namespace sluice {

using Symbol = std::uint32_t;
inline constexpr Symbol kNoValue = 0;  // a place that was never written

class Symbols {
 public:
  explicit Symbols(const ScheduleShape& shape)
      : shape_(shape), words_((static_cast<std::size_t>(shape.ranks) + 63) / 64) {
    nodes_.emplace_back();
    grow_set();
  }

  // The input of `rank` as the caller gave it.
  Symbol leaf(Rank rank, int chunk);
  // What a step computes. Errors name the fault only: a source without a value, other chunks summed, an input counted twice.
  Result<Symbol> combine(std::span<const Symbol> sources, Tree tree);
  // What a place holds after `value` was written to it: an input or output rounds a sum.
  Symbol stored(Symbol value, Buffer buffer);

  // Is it the sum of all ranks' inputs `chunk`?
  bool is_whole_sum(Symbol value, int chunk) const;
  bool is_leaf(Symbol value, Rank rank, int chunk) const;
  bool is_any_leaf(Symbol value) const { return value != kNoValue && nodes_[value].rank >= 0; }
  bool holds_all_ranks(Symbol value) const { return value != kNoValue && is_whole_sum(value, nodes_[value].chunk); }
  // Is it a whole sum in the canonical tree, rounded at most at its root?
  bool is_canonical(Symbol value) const;

  // "the sum of in.3 of ranks 0-2,5", for messages.
  std::string describe(Symbol value) const;

 private:
  struct Node {
    std::int32_t chunk = -1;
    std::int32_t rank = -1;  // of a leaf
    std::int32_t first = 0;  // the canonical tree over ranks first..first+count-1; count 0: another tree
    std::int32_t count = 0;
    std::uint32_t rounded = kNoValue;  // the unrounded sum, if this is one rounded
    std::uint32_t sources = 0;         // of a sum: where its sources begin in sources_, and how many
    std::uint32_t source_count = 0;
    Tree tree = Tree::chain;
  };
  struct Span {  // a canonical subtree; count 0: none
    int first = 0;
    int count = 0;
  };

  std::uint64_t* set(Symbol value) { return sets_.data() + value * words_; }
  const std::uint64_t* set(Symbol value) const { return sets_.data() + value * words_; }
  void grow_set() { sets_.resize(sets_.size() + words_); }
  std::uint64_t hash(const Node& node, std::span<const Symbol> sources) const;
  bool same(const Node& a, std::span<const Symbol> a_sources, const Node& b) const;
  // The number of this value, and whether it is new.
  std::pair<Symbol, bool> intern(const Node& node, std::span<const Symbol> sources);
  void grow_table();
  Span canonical_span(Symbol value) const;
  static Span join(Span left, Span right);
  Span fold(std::span<const Symbol> sources, Tree tree) const;

  ScheduleShape shape_;
  std::size_t words_;
  std::vector<Node> nodes_;
  std::vector<std::uint64_t> sets_;  // words_ per node: whose inputs it holds
  std::vector<Symbol> sources_;
  std::vector<Symbol> table_;  // open addressing by hash
};

}  // namespace sluice
