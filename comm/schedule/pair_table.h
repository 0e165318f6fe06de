// What the builder remembers of each ordered pair of ranks: 32 bytes for every pair that talks. Open addressing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

struct Pair {
  std::uint64_t key = 0;    // from * ranks + to + 1; 0: free entry
  std::int32_t level = -1;  // of the last message
  std::int32_t count = 0;   // messages at that level
  std::uint32_t step = 0;   // the last step that was looked at, plus one, and its messages here
  std::int32_t in_step = 0;
};

// A pair is never removed. What at() gives is good until its next call.
class PairTable {
 public:
  Pair& at(std::uint64_t key) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    Pair& pair = find(key);
    if (pair.key == 0) {
      pair.key = key;
      ++used_;
    }
    return pair;
  }

 private:
  Pair& find(std::uint64_t key) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t at = (key * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (entries_[at].key != 0 && entries_[at].key != key) at = (at + 1) & mask;
    return entries_[at];
  }
  void grow() {
    std::vector<Pair> old(std::max<std::size_t>(64, entries_.size() * 2));
    old.swap(entries_);
    for (const Pair& pair : old)
      if (pair.key != 0) find(pair.key) = pair;
  }

  std::vector<Pair> entries_;
  std::size_t used_ = 0;
};

}  // namespace sluice
