// The handle Runtime: its world, its counters, and the loop world. How a rank joins is in runtime_join.cpp.
#include "comm/communicator.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/loop_group.h"
#include "comm/executor/runtime_state.h"
#include "comm/trace/metrics.h"

namespace sluice {
namespace {

constexpr std::uint64_t kWorldId = 1;

}  // namespace

Runtime::Runtime(std::shared_ptr<detail::RuntimeState> state) : state_(std::move(state)) {}
Runtime::~Runtime() = default;

Result<std::vector<std::unique_ptr<Runtime>>> Runtime::loop(int ranks, std::uint64_t seed,
                                                            const RuntimeOptions& options) {
  LoopOptions loop;
  loop.seed = seed;
  SLUICE_TRY_ASSIGN(detail::LoopRuntimes made, detail::make_loop_runtimes(ranks, loop, options));
  return std::move(made.runtimes);
}

Communicator Runtime::world() {
  if (world_.valid()) return world_;
  detail::Identity identity;
  identity.id = kWorldId;
  identity.name = "world";
  identity.rank = state_->world_rank();
  identity.deadline = config().duration(Setting::deadline);
  for (Rank rank = 0; rank < state_->control().ranks(); ++rank) identity.members.push_back(rank);
  world_ = state_->make_communicator(std::move(identity));
  return world_;
}

std::vector<LaneCounters> Runtime::lane_counters() const { return state_->lane_counters(); }
std::string Runtime::lane_metrics() const { return detail::to_prometheus(lane_counters(), state_->world_rank()); }
Result<std::string> Runtime::write_trace(const std::string& folder, const std::string& why) {
  return state_->write_trace(folder, why);
}
const Config& Runtime::config() const { return state_->config(); }

}  // namespace sluice
