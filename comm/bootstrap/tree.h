// The shape of the control tree: a binary heap over world ranks, and how it mends when ranks are gone.
//
//   Parent    the nearest ancestor that is present; without one, the lowest present rank. The lowest present rank is the
//             root. A parent is always the lower rank, so whatever a rank knows or doesn't know yet, following parents
//             can't go in a circle.
//   Cost      O(log P) for a parent, O(P) for the children after losses.
#pragma once

#include <optional>
#include <vector>

#include "base/types.h"

namespace sluice {

enum class Presence : unsigned char { present, left, lost };

class TreeShape {
 public:
  explicit TreeShape(int ranks);

  int ranks() const { return static_cast<int>(presence_.size()); }
  bool holds(Rank rank) const { return rank >= 0 && rank < ranks(); }
  Presence presence(Rank rank) const { return presence_[static_cast<std::size_t>(rank)]; }
  bool present(Rank rank) const { return presence(rank) == Presence::present; }
  // A rank that left or is lost does not come back; one that left may still turn out lost. False: nothing changed.
  bool remove(Rank rank, Presence how);

  // Of a rank that may itself be gone. nullopt: it is the root.
  std::optional<Rank> parent(Rank rank) const;
  std::vector<Rank> children(Rank rank) const;  // present ones, rising

 private:
  std::vector<Presence> presence_;
  bool whole_ = true;
};

}  // namespace sluice
