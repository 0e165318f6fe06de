// All ranks of a loop world in one thread: their engines are driven together, in an order that the seed decides, and the virtual
// clock moves when none of them can.
#pragma once

#include <memory>
#include <vector>

#include "base/rng.h"
#include "comm/bootstrap/loop_control.h"
#include "comm/communicator.h"
#include "comm/executor/engine.h"
#include "transport/loop/loop_world.h"

namespace sluice::detail {

class LoopGroup {
 public:
  LoopGroup(int ranks, const LoopOptions& options);

  LoopWorld& world() { return world_; }
  LoopControls& controls() { return controls_; }
  void add(Engine* engine);
  void remove(Engine* engine);

  // Drives all ranks until the operation is finished.
  void drive(Operation& operation);
  // One turn of every rank; when nothing moved, time does. False: nothing moved and nothing is under way.
  bool step();
  // As if the process of `rank` had died: its traffic stops, and the control plane tells the others.
  void kill(Rank rank, const std::string& how);

 private:
  LoopWorld world_;
  LoopControls controls_;
  Rng rng_;
  std::vector<Engine*> engines_;
};

struct LoopRuntimes {
  std::shared_ptr<LoopGroup> group;  // shared with the runtimes, which die in any order
  std::vector<std::unique_ptr<Runtime>> runtimes;
};
Result<LoopRuntimes> make_loop_runtimes(int ranks, const LoopOptions& loop, const RuntimeOptions& options);

}  // namespace sluice::detail
