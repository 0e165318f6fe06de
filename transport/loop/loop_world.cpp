#include "transport/loop/loop_world.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "transport/extent_allocator.h"
#include "transport/mapping.h"
#include "transport/ring_memory.h"

namespace sluice {
namespace {

constexpr Nanoseconds kLossDelayMax = std::chrono::seconds(1);
constexpr std::size_t kArenaBytes = std::size_t{1} << 34;     // address space of each rank's windows
constexpr std::size_t kArenaBytesMin = std::size_t{1} << 26;  // where there is little address space

std::string between(Rank rank, Rank peer) {
  return "rank " + std::to_string(rank) + ": peer rank " + std::to_string(peer) + " (loop)";
}

}  // namespace

struct LoopWorld::Flow {
  FlowKey key;
  OutFlow out;
  InFlow in;
  RingMemory out_ring;  // empty: this half is not open
  RingMemory in_ring;
  bool out_closed = false;
  bool in_closed = false;
  std::uint64_t sent = 0;  // messages put under way
  std::uint64_t delivered = 0;
  std::uint64_t returned = 0;  // released count put under way
  Nanoseconds message_due{0};  // when the last one arrives: the next can't before
  Nanoseconds credit_due{0};

  bool moves() const { return out_ring && in_ring && !out_closed && !in_closed; }
};

class LoopWorld::Endpoint final : public Transport {
 public:
  Endpoint(LoopWorld& world, Rank rank, int ranks)
      : world_(world), rank_(rank), peers_(static_cast<std::size_t>(ranks)) {
    if (world_.options_.windows) reserve_arena();
  }

  LinkClass link_class() const override { return LinkClass::loop; }
  Capabilities capabilities(Rank peer) const override {
    const bool windows =
        arena_.data() != nullptr && world_.endpoints_[static_cast<std::size_t>(peer)]->arena_.data() != nullptr;
    const double mean = 0.5e-9 * static_cast<double>((world_.options_.delay_min + world_.options_.delay_max).count());
    return {LinkClass::loop, windows, mean, 1e10, kSlotBytesMax};
  }

  Result<OutFlow*> open_out(Rank peer, FlowId id, RingShape shape) override {
    SLUICE_TRY_ASSIGN(Flow* const flow, open(rank_, peer, id, shape, &Flow::out_ring));
    if (std::find(out_flows_.begin(), out_flows_.end(), flow) == out_flows_.end()) {
      flow->out.bind(flow->out_ring.ring(), {}, arena_.data(), arena_.bytes());
      insert_by_lane(out_flows_, flow);
    }
    return &flow->out;
  }

  Result<InFlow*> open_in(Rank peer, FlowId id, RingShape shape) override {
    SLUICE_TRY_ASSIGN(Flow* const flow, open(peer, rank_, id, shape, &Flow::in_ring));
    if (std::find(in_flows_.begin(), in_flows_.end(), flow) == in_flows_.end()) {
      const Mapping& theirs = world_.endpoints_[static_cast<std::size_t>(peer)]->arena_;
      flow->in.bind(flow->in_ring.ring(), {}, theirs.data(), theirs.bytes());
      insert_by_lane(in_flows_, flow);
    }
    return &flow->in;
  }

  void use_lane(std::uint64_t, const LaneRules&) override {}
  void close_flows(std::uint64_t communicator) override {
    closed_.insert(communicator);
    const auto forget = [&](std::vector<Flow*>& flows, bool Flow::*closed) {
      std::erase_if(flows, [&](Flow* flow) {
        if (flow->key.id.communicator != communicator) return false;
        flow->*closed = true;
        world_.drop_events_of(flow);
        return true;
      });
    };
    forget(out_flows_, &Flow::out_closed);
    forget(in_flows_, &Flow::in_closed);
    std::erase_if(world_.flows_, [](const auto& entry) {
      const Flow& flow = *entry.second;
      return (flow.out_closed || !flow.out_ring) && (flow.in_closed || !flow.in_ring);
    });
  }

  std::size_t progress() override {
    if (dead_ || stalled_) return 0;
    std::size_t moved = collect();
    while (!events_.empty() && events_.begin()->due <= world_.clock_.now()) {
      const Event event = *events_.begin();
      events_.erase(events_.begin());
      take(event);
      ++moved;
    }
    return moved;
  }

  void prepare_wait() override {}
  void cancel_wait() override {}
  void wait(Nanoseconds at_most) override {
    if (std::exchange(woken_, false)) return;
    if (!events_.empty() && events_.begin()->due <= world_.clock_.now()) return;
    world_.advance(at_most);
  }
  void wake() override { woken_ = true; }
  int wait_fd() const override { return -1; }

  Status peer_status(Rank peer) const override {
    return lost(peer) ? peers_[static_cast<std::size_t>(peer)].why : Status();
  }
  void fail_peer(Rank peer, Status why) override {
    world_.drop_events_between(rank_, peer);
    world_.lose(rank_, peer, Nanoseconds(0), std::move(why));
    world_.lose(peer, rank_, world_.delay(), {Code::peer_lost, between(peer, rank_) + " closed the link"});
  }
  void adopt(LinkId, UniqueFd) override {}  // nothing is ever asked of a Dialer

  void* allocate_window(std::size_t bytes) override {
    if (!space_) return nullptr;
    const auto offset = space_->allocate(bytes);
    return offset ? arena_.data() + *offset : nullptr;
  }
  void free_window(void* memory) override {
    if (memory != nullptr) space_->free(static_cast<std::size_t>(static_cast<std::byte*>(memory) - arena_.data()));
  }

 private:
  friend class LoopWorld;
  struct Peer {
    Nanoseconds lost_at{0};
    Status why;  // ok: not lost
  };

  bool lost(Rank peer) const {
    const Peer& state = peers_[static_cast<std::size_t>(peer)];
    return !state.why.ok() && world_.clock_.now() >= state.lost_at;
  }

  void reserve_arena() {
    for (std::size_t bytes = kArenaBytes; bytes >= kArenaBytesMin; bytes /= 2) {
      auto arena = Mapping::reserve(bytes);
      if (!arena.ok()) continue;
      arena_ = *std::move(arena);
      space_.emplace(arena_.bytes());
      return;
    }
  }

  // The flow, with the ring of this rank's half in it.
  Result<Flow*> open(Rank from, Rank to, FlowId id, RingShape shape, RingMemory Flow::*half) {
    const Rank peer = from == rank_ ? to : from;
    if (peer < 0 || peer >= world_.ranks())
      return Error{Code::invalid_argument, "rank " + std::to_string(rank_) + ": no rank " + std::to_string(peer) +
                                               " to open a flow with, there are " + std::to_string(world_.ranks())};
    SLUICE_TRY(check_shape(shape));
    if (closed_.contains(id.communicator))
      return Error{Code::invalid_argument, between(rank_, peer) + ": the flow's communicator was closed here"};
    SLUICE_TRY(peer_status(peer));
    Flow* const flow = world_.flow_between({from, to, id});
    RingMemory& mine = flow->*half;
    RingMemory& other = half == &Flow::out_ring ? flow->in_ring : flow->out_ring;
    if (mine) {
      if (mine.ring().shape() == shape) return flow;
      return Error{Code::invalid_argument, between(rank_, peer) + ": the flow is open with another shape"};
    }
    SLUICE_TRY_ASSIGN(mine, RingMemory::make(shape));
    if (other && other.ring().shape() != shape) {
      const Status why{Code::refused, between(rank_, peer) + ": both ends opened a flow with different shapes"};
      world_.lose(rank_, peer, Nanoseconds(0), why);
      world_.lose(peer, rank_, Nanoseconds(0), why);
    }
    return flow;
  }

  static void insert_by_lane(std::vector<Flow*>& flows, Flow* flow) {
    const auto later = [](std::uint8_t lane, const Flow* other) { return lane < other->key.id.lane; };
    flows.insert(std::upper_bound(flows.begin(), flows.end(), flow->key.id.lane, later), flow);
  }

  // Puts under way what this rank committed and released since the last time.
  std::size_t collect() {
    if (dead_ || stalled_) return 0;
    std::size_t moved = 0;
    for (Flow* flow : out_flows_) {
      if (!flow->moves() || lost(flow->key.to)) continue;
      for (; flow->sent < flow->out.committed() && world_.has_shared_slot(flow->key); ++flow->sent, ++moved)
        flow->message_due =
            world_.schedule(flow->key.to, {.kind = Kind::message, .from = rank_, .flow = flow}, flow->message_due);
    }
    for (Flow* flow : in_flows_) {
      if (!flow->moves() || flow->returned == flow->in.released() || lost(flow->key.from)) continue;
      flow->returned = flow->in.released();
      flow->credit_due = world_.schedule(
          flow->key.from, {.kind = Kind::credit, .from = rank_, .flow = flow, .released = flow->returned},
          flow->credit_due);
      ++moved;
    }
    return moved;
  }

  void take(const Event& event) {
    if (event.kind == Kind::loss) return world_.note(event, 0);  // peer_status tells by the clock
    if (lost(event.from)) return;
    Flow& flow = *event.flow;
    if (event.kind == Kind::credit) {
      // Two counts that are due together arrive in any order; a later one includes the earlier.
      if (std::atomic<std::uint64_t>& head = flow.out_ring.ring().control().head;
          head.load(std::memory_order_relaxed) < event.released)
        head.store(event.released, std::memory_order_release);
      return world_.note(event, event.released);
    }
    const std::uint64_t message = flow.delivered++;
    const Ring& from = flow.out_ring.ring();
    const Ring& to = flow.in_ring.ring();
    SlotHeader header = from.header(message);
    if (!header.described())
      std::memcpy(to.place(message, header.bytes), from.place(message, header.bytes),
                  std::min(header.bytes, to.shape().slot_bytes));
    if (world_.corrupt_.erase({event.from, rank_}) != 0) header.digest = ~header.digest;
    to.publish(message, header);
    world_.note(event, message);
  }

  LoopWorld& world_;
  Rank rank_;
  std::vector<Peer> peers_;
  std::vector<Flow*> out_flows_;  // by lane, then by the order of opening
  std::vector<Flow*> in_flows_;
  std::set<std::uint64_t> closed_;
  std::set<Event> events_;  // under way to this rank
  Mapping arena_;
  std::optional<ExtentAllocator> space_;
  bool dead_ = false;
  bool stalled_ = false;
  bool woken_ = false;
};

LoopWorld::LoopWorld(int ranks, LoopOptions options) : options_(options), rng_(options.seed) {
  SLUICE_ASSERT(ranks >= 1, "a world has ranks");
  SLUICE_ASSERT(options.delay_min.count() >= 0 && options.delay_min <= options.delay_max, "delays from small to large");
  for (Rank rank = 0; rank < ranks; ++rank) endpoints_.push_back(std::make_unique<Endpoint>(*this, rank, ranks));
}

LoopWorld::~LoopWorld() = default;

Transport& LoopWorld::transport(Rank rank) { return *endpoints_.at(static_cast<std::size_t>(rank)); }

bool LoopWorld::advance(Nanoseconds at_most) {
  std::optional<Nanoseconds> ahead;
  bool due = false;
  for (const auto& endpoint : endpoints_) endpoint->collect();
  for (const auto& endpoint : endpoints_) {
    if (endpoint->dead_ || endpoint->stalled_ || endpoint->events_.empty()) continue;
    due = due || endpoint->events_.begin()->due <= clock_.now();
    const auto next = endpoint->events_.lower_bound({.due = clock_.now() + Nanoseconds(1)});
    if (next != endpoint->events_.end() && (!ahead || next->due < *ahead)) ahead = next->due;
  }
  Nanoseconds step = at_most;
  if (ahead) step = std::min(step, *ahead - clock_.now());
  if (due) step = std::min(step, options_.delay_max);
  clock_.advance(std::max(step, Nanoseconds(0)));
  return due || ahead;
}

int LoopWorld::pending() const {
  std::size_t events = 0;
  for (const auto& endpoint : endpoints_)
    if (!endpoint->dead_ && !endpoint->stalled_) events += endpoint->events_.size();
  return static_cast<int>(events);
}

void LoopWorld::kill(Rank rank) {
  Endpoint& dead = *endpoints_.at(static_cast<std::size_t>(rank));
  if (dead.dead_) return;
  dead.dead_ = true;
  dead.events_.clear();
  std::map<const Flow*, bool> arrives;
  for (Rank peer = 0; peer < ranks(); ++peer) {
    if (peer == rank) continue;
    std::erase_if(endpoints_[static_cast<std::size_t>(peer)]->events_, [&](const Event& event) {
      if (event.from != rank || event.flow == nullptr) return false;
      const auto [entry, first] = arrives.try_emplace(event.flow, true);
      if (first) entry->second = rng_.chance(0.5);
      return !entry->second;
    });
    const Nanoseconds after(
        static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(kLossDelayMax.count()) + 1)));
    lose(peer, rank, after, {Code::peer_lost, between(peer, rank) + " died"});
  }
}

void LoopWorld::stall(Rank rank) {
  Endpoint& stalled = *endpoints_.at(static_cast<std::size_t>(rank));
  stalled.stalled_ = true;
  for (Rank peer = 0; peer < ranks(); ++peer)
    if (peer != rank) drop_events_between(rank, peer);
}

void LoopWorld::cut(Rank a, Rank b) {
  drop_events_between(a, b);
  lose(a, b, Nanoseconds(0), {Code::peer_lost, between(a, b) + ": the link was cut"});
  lose(b, a, Nanoseconds(0), {Code::peer_lost, between(b, a) + ": the link was cut"});
}

void LoopWorld::corrupt_next(Rank from, Rank to) { corrupt_.insert({from, to}); }

bool LoopWorld::has_shared_slot(const FlowKey& key) const {
  if (options_.shared_slots == 0) return true;
  std::uint64_t in_use = 0;
  for (const auto& [other, flow] : flows_)
    if (other.from == key.from && other.to == key.to && flow->out_ring)
      in_use += flow->sent - flow->out_ring.ring().control().head.load(std::memory_order_relaxed);
  return in_use < options_.shared_slots;
}

Nanoseconds LoopWorld::delay() {
  const auto range = static_cast<std::uint64_t>((options_.delay_max - options_.delay_min).count()) + 1;
  return options_.delay_min + Nanoseconds(static_cast<std::int64_t>(rng_.below(range)));
}

Nanoseconds LoopWorld::schedule(Rank to, Event event, Nanoseconds not_before) {
  event.due = std::max(clock_.now() + delay(), not_before);
  event.tie = rng_.next();
  event.sequence = sequence_++;
  const Endpoint& endpoint = *endpoints_[static_cast<std::size_t>(to)];
  if (!endpoint.dead_ && !endpoint.stalled_) endpoints_[static_cast<std::size_t>(to)]->events_.insert(event);
  return event.due;
}

void LoopWorld::lose(Rank at, Rank peer, Nanoseconds after, Status why) {
  Endpoint& endpoint = *endpoints_[static_cast<std::size_t>(at)];
  Endpoint::Peer& state = endpoint.peers_[static_cast<std::size_t>(peer)];
  const Nanoseconds when = clock_.now() + after;
  if (!state.why.ok() && state.lost_at <= when) return;  // known, or about to be
  state = {when, std::move(why)};
  if (!endpoint.dead_)
    endpoint.events_.insert({.due = when, .tie = 0, .sequence = sequence_++, .kind = Kind::loss, .from = peer});
}

LoopWorld::Flow* LoopWorld::flow_between(const FlowKey& key) {
  std::unique_ptr<Flow>& flow = flows_[key];
  if (flow == nullptr) {
    flow = std::make_unique<Flow>();
    flow->key = key;
  }
  return flow.get();
}

void LoopWorld::drop_events_between(Rank a, Rank b) {
  const auto drop = [&](Rank at, Rank from) {
    std::erase_if(endpoints_[static_cast<std::size_t>(at)]->events_,
                  [from](const Event& event) { return event.from == from && event.flow != nullptr; });
  };
  drop(a, b);
  drop(b, a);
}

void LoopWorld::drop_events_of(const Flow* flow) {
  for (const Rank rank : {flow->key.from, flow->key.to})
    std::erase_if(endpoints_[static_cast<std::size_t>(rank)]->events_,
                  [flow](const Event& event) { return event.flow == flow; });
}

void LoopWorld::note(const Event& event, std::uint64_t number) {
  trace_ = mix64(trace_ ^ static_cast<std::uint64_t>(clock_.now().count()));
  trace_ = mix64(trace_ ^ (number << 8) ^ static_cast<std::uint64_t>(event.kind));
  trace_ = mix64(trace_ ^ static_cast<std::uint64_t>(event.from));
  if (event.flow != nullptr)
    trace_ = mix64(trace_ ^ event.flow->key.id.communicator ^ (std::uint64_t{event.flow->key.id.channel} << 32));
}

}  // namespace sluice
