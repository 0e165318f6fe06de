// The control planes of a loop world: N ranks in one thread, no socket, no clock. What a rank floods is queued; deliver()
// hands it to the other ranks' handlers in a fixed order, so a run is a function of its seed alone.
//
//   Threads   one. on_notice's promise (no call under way when it returns) holds since deliver() is the only caller.
//   Links     loop transports need no streams: want_link and deliver_links_to do nothing here.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "comm/bootstrap/control.h"

namespace sluice {

class LoopControls {
 public:
  explicit LoopControls(int ranks);  // >= 1
  ~LoopControls();
  LoopControls(const LoopControls&) = delete;
  LoopControls& operator=(const LoopControls&) = delete;

  // The control plane of `rank`; once per rank. May outlive this object (nothing is delivered then).
  std::unique_ptr<Control> take(Rank rank);

  // Delivers what was queued before the call, oldest first, each to the ranks in rising order; what handlers flood meanwhile
  // waits for the next call. Returns how many handler calls were made.
  std::size_t deliver();

  // As if the process of `rank` had died: what it queued is still delivered, what it floods from now on is not, it hears
  // nothing any more, and every other rank hears peer_lost with `how`. Again for the same rank: nothing.
  void lose(Rank rank, std::string how);

 private:
  struct World;
  class Member;
  std::shared_ptr<World> world_;  // shared: the runtimes of a loop world are destroyed in any order
};

}  // namespace sluice
