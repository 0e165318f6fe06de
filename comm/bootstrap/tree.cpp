#include "comm/bootstrap/tree.h"

#include <algorithm>

namespace sluice {

TreeShape::TreeShape(int ranks) : presence_(static_cast<std::size_t>(ranks), Presence::present) {}

bool TreeShape::remove(Rank rank, Presence how) {
  if (presence(rank) == Presence::lost || presence(rank) == how) return false;
  presence_[static_cast<std::size_t>(rank)] = how;
  whole_ = false;
  return true;
}

std::optional<Rank> TreeShape::parent(Rank rank) const {
  for (Rank up = rank; up > 0;) {
    up = (up - 1) / 2;
    if (present(up)) return up;
  }
  for (Rank lowest = 0; lowest < rank; ++lowest)
    if (present(lowest)) return lowest;
  return std::nullopt;
}

std::vector<Rank> TreeShape::children(Rank rank) const {
  std::vector<Rank> result;
  const Rank last = whole_ ? std::min(2 * rank + 2, ranks() - 1) : ranks() - 1;
  for (Rank child = whole_ ? 2 * rank + 1 : rank + 1; child <= last; ++child)
    if (present(child) && parent(child) == rank) result.push_back(child);
  return result;
}

}  // namespace sluice
