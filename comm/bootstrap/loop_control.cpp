#include "comm/bootstrap/loop_control.h"

#include <deque>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "comm/bootstrap/peer_info.h"

namespace sluice {

struct LoopControls::World {
  struct Seat {
    PeerInfo info;
    std::function<void(const Notice&)> handler;
    bool taken = false;
    bool present = false;  // taken, and neither lost nor left
    bool lost = false;
  };
  struct Queued {
    Rank source;  // does not hear it
    Notice notice;
  };

  explicit World(int ranks) : seats(static_cast<std::size_t>(ranks)) {}
  Seat& seat(Rank rank) {
    SLUICE_ASSERT(rank >= 0 && static_cast<std::size_t>(rank) < seats.size(), "a rank of this loop world");
    return seats[static_cast<std::size_t>(rank)];
  }

  std::vector<Seat> seats;
  std::deque<Queued> queue;
};

class LoopControls::Member final : public Control {
 public:
  Member(std::shared_ptr<World> world, Rank rank) : world_(std::move(world)), rank_(rank) {}
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() override { Member::leave(); }

  Rank rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(world_->seats.size()); }
  const PeerInfo& peer(Rank world_rank) const override { return world_->seat(world_rank).info; }

  void on_notice(std::function<void(const Notice&)> handler) override {
    world_->seat(rank_).handler = std::move(handler);
  }
  void flood(Notice notice) override {
    if (!world_->seat(rank_).present) return;
    bound(notice);
    world_->queue.push_back({rank_, std::move(notice)});
  }
  void want_link(LinkId, LinkClass) override {}
  void deliver_links_to(LinkClass, Transport*) override {}
  void leave() override {
    if (world_->seat(rank_).present)
      world_->queue.push_back(
          {rank_,
           {NoticeKind::peer_left, 0, rank_, Code::ok, "rank " + std::to_string(rank_) + " has left the job", {}}});
    world_->seat(rank_).present = false;
    world_->seat(rank_).handler = nullptr;
  }

 private:
  std::shared_ptr<World> world_;  // shared: see LoopControls
  Rank rank_;
};

LoopControls::LoopControls(int ranks) : world_(std::make_shared<World>(ranks)) {
  SLUICE_ASSERT(ranks >= 1, "a loop world has a rank");
  const PeerInfo here = this_process();
  for (World::Seat& seat : world_->seats) seat.info = here;
}

LoopControls::~LoopControls() { world_->queue.clear(); }

std::unique_ptr<Control> LoopControls::take(Rank rank) {
  World::Seat& seat = world_->seat(rank);
  SLUICE_ASSERT(!seat.taken, "each rank's control plane is taken once");
  seat.taken = seat.present = true;
  return std::make_unique<Member>(world_, rank);
}

std::size_t LoopControls::deliver() {
  std::size_t calls = 0;
  for (std::size_t left = world_->queue.size(); left > 0; --left) {
    const World::Queued next = std::move(world_->queue.front());
    world_->queue.pop_front();
    for (std::size_t to = 0; to < world_->seats.size(); ++to) {
      World::Seat& seat = world_->seats[to];
      if (static_cast<Rank>(to) == next.source || !seat.present || !seat.handler) continue;
      const auto handler = seat.handler;  // a copy: it may set another from inside
      handler(next.notice);
      ++calls;
    }
  }
  return calls;
}

void LoopControls::lose(Rank rank, std::string how) {
  World::Seat& seat = world_->seat(rank);
  if (seat.lost) return;
  seat.lost = true;
  seat.present = false;
  Notice notice;
  notice.kind = NoticeKind::peer_lost;
  notice.world_rank = rank;
  notice.code = Code::peer_lost;
  notice.text = std::move(how);
  bound(notice);
  world_->queue.push_back({rank, std::move(notice)});
}

}  // namespace sluice
