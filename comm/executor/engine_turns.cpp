// Whose turn it is: the part of the engine that knows lanes. Who drives and how it waits is in engine.cpp.
#include <sched.h>

#include <algorithm>

#include "comm/executor/communicator_state.h"
#include "comm/executor/engine.h"

namespace sluice::detail {
namespace {

constexpr int kStepsShared = 1;           // one slice step: the most that an urgent operation waits for
constexpr std::size_t kTurnsPerPass = 4;  // turns between two looks at the transports
// So long after its last step what is urgent has the cores to itself; then it waits for somebody who computes.
constexpr Nanoseconds kRoomForUrgent = std::chrono::microseconds(100);
constexpr Nanoseconds kNetworkForUrgent = std::chrono::milliseconds(1);

// Stable, for few that are nearly in order; takes no memory.
void sort_by_share(std::vector<CommunicatorState*>& lane) {
  const auto moved = [&](std::size_t at) { return lane[at]->lane_state().share.moved(); };
  for (std::size_t i = 1; i < lane.size(); ++i)
    for (std::size_t j = i; j > 0 && moved(j) < moved(j - 1); --j) std::swap(lane[j], lane[j - 1]);
}

}  // namespace

void Engine::take_posts() {
  if (posts_.load(std::memory_order_relaxed) == nullptr) return;
  Operation* list = posts_.exchange(nullptr, std::memory_order_acquire);
  Operation* in_order = nullptr;
  while (list != nullptr) in_order = std::exchange(list, std::exchange(list->next, in_order));
  while (in_order != nullptr) admit(std::exchange(in_order, in_order->next));
}

void Engine::admit(Operation* operation) {
  CommunicatorState& communicator = operation->communicator();
  if (!communicator.enqueue(operation)) return;
  LaneState& lane = communicator.lane_state();
  const std::uint8_t priority = lane.rules.priority;
  lane.share.catch_up(served_[priority], lane.rules.weight);
  active_[priority].push_back(&communicator);
  ++active_count_;
  if (shows_urgency_) {
    moved_at_[priority] = clock_.now();
    show_urgency();
  }
  if (!lane.pinned) return;
  pinned_.fetch_add(1, std::memory_order_relaxed);
  if (!serving_) call_thread();
}

// A turn of whoever is due. False: nobody could move anything.
bool Engine::turn_of_one() {
  if (active_count_ == 0) return false;
  if (active_count_ == 1)
    for (Active& lane : active_)
      if (!lane.empty() && is_alone(lane.front()->lane_state())) return turn_alone(lane);
  const Nanoseconds now = clock_.now();
  return turn_of_starving(now) || turn_of_most_urgent(now);
}

// The most urgent that can move; of one priority, whose lane moved least by its weight, of one lane the one that waited longest.
bool Engine::turn_of_most_urgent(Nanoseconds now) {
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    Active& lane = active_[priority];
    if (!lane.empty() && options_.crowded && makes_room(priority, now)) return false;
    sort_by_share(lane);
    for (std::size_t i = 0; i < lane.size();) {
      const std::size_t before = lane.size();
      if (turn_of(lane, i, now)) return true;
      if (lane.size() == before) ++i;
    }
  }
  return false;
}

// What a less urgent lane is guaranteed comes before what more urgent ones ask for.
bool Engine::turn_of_starving(Nanoseconds now) {
  bool most_urgent = true;
  for (std::size_t priority = 0; priority < kPriorities; ++priority) {
    Active& lane = active_[priority];
    if (lane.empty() || (std::exchange(most_urgent, false) && !more_urgent_elsewhere(priority))) continue;
    for (std::size_t i = 0; i < lane.size(); ++i)
      if (lane[i]->lane_state().floor.any(now) && turn_of(lane, i, now)) return true;
  }
  return false;
}

// Nobody competes, nothing is limited: nothing is counted.
bool Engine::turn_alone(Active& lane) {
  CommunicatorState& communicator = *lane.front();
  const CommunicatorState::Turn turn = communicator.turn(kStepsAlone, nullptr);
  if (turn.finished != 0 || turn.idle) settle(lane, 0, turn.finished, turn.idle);
  if (options_.crowded && turn.moved) share_cores(communicator.lane_state());
  return turn.moved;
}

// Whoever moved goes to the end, whoever has nothing left goes away.
bool Engine::turn_of(Active& lane, std::size_t at, Nanoseconds now) {
  LaneState& state = lane[at]->lane_state();
  const bool broken = lane[at]->broken();  // then whoever waits is told at once
  if (!broken && !is_for_here(state)) {
    if (!thread_called_ && lane[at]->ripe()) call_thread();
    return false;
  }
  if (!broken && state.held(now)) {
    const Nanoseconds until = now + state.wait(now);
    held_until_ = std::min(held_until_.value_or(until), until);
    return false;
  }
  CommunicatorState::Moved bytes;
  const CommunicatorState::Turn turn = lane[at]->turn(kStepsShared, &bytes);
  if (turn.moved) {
    served_[state.rules.priority] = state.share.moved();
    state.charge(bytes.sent, bytes.here, now);
    moved_at_[state.rules.priority] = now;
  }
  settle(lane, at, turn.finished, turn.idle);
  const auto place = lane.begin() + static_cast<std::ptrdiff_t>(at);
  if (turn.moved && !turn.idle) std::rotate(place, place + 1, lane.end());
  if (turn.finished != 0 && state.pinned) wake_waiters();
  if (options_.crowded && turn.moved) share_cores(state);
  return turn.moved;
}

// Of an operation.
void Engine::tell_of_end(std::uint8_t priority) {
  wake_onlookers();
  if (patient_[priority].load(std::memory_order_relaxed) != 0) wake_waiters();
}

// After a turn of the communicator at this place.
void Engine::settle(Active& lane, std::size_t at, int finished, bool idle) {
  if (finished != 0) {
    unfinished_.fetch_sub(finished, std::memory_order_relaxed);
    if (onlookers_.any()) tell_of_end(lane[at]->lane_state().rules.priority);
  }
  if (!idle) return;
  if (lane[at]->lane_state().pinned) pinned_.fetch_sub(1, std::memory_order_relaxed);
  lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(at));
  --active_count_;
  if (shows_urgency_) show_urgency();
}

// After a turn that moved something.
void Engine::share_cores(const LaneState& state) {
  naps_ = 0;
  make_way(state.rules.priority);
}

// Of what wants the cores, where they are short, and the network.
void Engine::show_urgency() {
  ShownUrgency most;
  for (std::uint8_t priority = 0; priority < kPriorities; ++priority)
    for (const CommunicatorState* one : active_[priority]) {
      if (options_.crowded && !most.any) most.any = priority;
      if (options_.shares_network && !most.network && one->leaves_host()) most.network = priority;
    }
  if (most == shown_) return;
  shown_ = most;
  for (Transport* transport : transports_) transport->show_urgency(most);
}

// Only transports of this host know of any.
UrgencyElsewhere Engine::urgency_elsewhere() const {
  for (const Transport* transport : transports_)
    if (transport->link_class() == LinkClass::shared_memory) return transport->urgency_elsewhere();
  return {};
}

// What the ranks of this host hand to its network together can't be put in order any more: whoever has the less urgent keeps it back while
// another begins with something more urgent that leaves the host. Not for long, for that one may wait for somebody else.
void Engine::share_network() {
  const UrgencyElsewhere elsewhere = urgency_elsewhere();
  NetworkClaim claim;
  if (elsewhere.network != 0 || elsewhere.begins != network_.begins) {
    const Nanoseconds now = clock_.now();
    for (std::uint8_t lane = 0; lane < kLanes; ++lane) {
      if (elsewhere.begins[lane] != network_.begins[lane]) network_.began_at[lane] = now;
      if ((elsewhere.network & UrgencyElsewhere::bit(lane)) == 0) continue;
      if (!claim.lane) claim.lane = lane;
      if (!claim.held_below && now - network_.began_at[lane] < kNetworkForUrgent) claim.held_below = lane;
    }
    network_.begins = elsewhere.begins;
  }
  if (claim == network_.claim) return;
  network_.claim = claim;
  for (Transport* transport : transports_) transport->claim_network(claim);
}

// After a slice: another rank may want this very core for something more urgent.
void Engine::make_way(std::size_t priority) {
  if (more_urgent_elsewhere(priority)) sched_yield();
}

// Where ranks share cores, a slice of what is less urgent would hold up not only what is urgent here.
bool Engine::makes_room(std::size_t priority, Nanoseconds now) {
  const UrgencyElsewhere elsewhere = urgency_elsewhere();
  const bool outranked = elsewhere.more_urgent(priority);
  const bool here = std::any_of(active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(priority),
                                [](const Active& lane) { return !lane.empty(); });
  if (!outranked && !here) return false;
  const std::uint64_t begins = elsewhere.more_urgent_begins(priority);
  if (begins != std::exchange(begins_[priority], begins)) begins_at_[priority] = now;
  Nanoseconds last = outranked ? begins_at_[priority] : Nanoseconds(0);
  for (std::size_t i = 0; i < priority; ++i)
    if (!active_[i].empty()) last = std::max(last, moved_at_[i]);
  if (now - last >= kRoomForUrgent) return false;
  return makes_room_ = true;
}

std::size_t Engine::pass() {
  std::size_t moved = 0;
  held_until_.reset();
  if (shows_urgency_) {
    makes_room_ = false;
    if (options_.shares_network) share_network();
  }
  do take_posts();
  while (turn_of_one() && ++moved < kTurnsPerPass);
  for (Transport* transport : transports_) moved += transport->progress();
  return moved;
}

}  // namespace sluice::detail
