// How the survivors of a communicator agree on who is left: over the control tree, without a leader.
//
//   Each survivor floods the set of members that it takes for lost; sets that it hears are joined to its own, and flooded again
//   when that made it larger. Whoever has heard its own set from every member outside of it decides, and floods the
//   decision; a decision that is heard is adopted. Two different decisions can't both be reached: each needs the last
//   word of every survivor.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "comm/bootstrap/control.h"

namespace sluice::detail {

class ShrinkTable {
 public:
  // From the control plane's thread.
  void on_notice(const Notice& notice);
  void on_change();  // somebody else died: whoever waits looks again

  struct Vote {
    std::uint64_t communicator = 0;
    std::vector<Rank> members;  // world ranks
    Nanoseconds deadline{0};
  };
  // Blocks until decided; returns the lost members (world ranks). `known_lost` is asked again whenever something changed. Errors:
  // timeout names the members that did not vote; aborted: the others take this rank for lost.
  Result<std::set<Rank>> agree(Control& control, const Vote& vote, const std::function<std::set<Rank>()>& known_lost);

 private:
  struct Votes {
    std::map<Rank, std::set<Rank>> said;
    std::optional<std::set<Rank>> decided;
  };
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, Votes> votes_;  // GUARDED_BY(mutex_), by communicator
};

}  // namespace sluice::detail
