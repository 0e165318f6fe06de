#include "comm/bootstrap/control.h"

#include "base/assert.h"
#include "comm/bootstrap/messages.h"
#include "comm/bootstrap/peer_info.h"
#include "comm/bootstrap/root_listener.h"
#include "comm/bootstrap/tree_control.h"

namespace sluice {
namespace {

class AloneControl final : public Control {
 public:
  Rank rank() const override { return 0; }
  int ranks() const override { return 1; }
  const PeerInfo& peer(Rank world_rank) const override {
    SLUICE_ASSERT(world_rank == 0, "a job of one rank has rank 0");
    return info_;
  }
  void on_notice(std::function<void(const Notice&)>) override {}
  void flood(Notice) override {}
  void want_link(LinkId, LinkClass) override {}
  void deliver_links_to(LinkClass, Transport*) override {}
  void leave() override {}

 private:
  PeerInfo info_ = this_process();
};

Status check(const Control::Join& join) {
  if (join.ranks < 1 || join.ranks > kWorldRanksMax)
    return {Code::invalid_argument,
            "a job has 1 to " + std::to_string(kWorldRanksMax) + " ranks, not " + std::to_string(join.ranks)};
  if (join.rank < 0 || join.rank >= join.ranks)
    return {Code::invalid_argument, "rank " + std::to_string(join.rank) + " can't join a job of " +
                                        std::to_string(join.ranks) + " ranks: ranks are 0 to " +
                                        std::to_string(join.ranks - 1)};
  return {};
}

}  // namespace

Result<UniqueId> Control::make_unique_id(const Config& config) {
  SLUICE_TRY_ASSIGN(const Rendezvous rendezvous, open_rendezvous(config));
  return to_unique_id(rendezvous);
}

Result<std::unique_ptr<Control>> Control::join(const Join& join) {
  SLUICE_TRY(check(join));
  SLUICE_TRY_ASSIGN(const Rendezvous rendezvous, to_rendezvous(join.id));
  if (join.ranks == 1) {
    forget_root_listeners(rendezvous);
    return alone();
  }
  const Config defaults;
  JoinPlan plan = plan_of(join.rank, join.ranks, join.deadline, join.config == nullptr ? defaults : *join.config);
  plan.self.tuning = join.tuning;
  plan.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
  return join_by_plan(std::move(plan));
}

std::unique_ptr<Control> Control::alone() { return std::make_unique<AloneControl>(); }

}  // namespace sluice
