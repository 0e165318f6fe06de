#include "comm/executor/call_lanes.h"

#include <algorithm>

#include "base/rng.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"

namespace sluice::detail {

std::uint64_t agreement_hash(const Lane& lane) {
  return mix64((std::uint64_t{hash_word(lane.name)} << 32) | (std::uint64_t{*lane.weight} << 8) |
               static_cast<std::uint8_t>(*lane.priority));
}

Result<CommunicatorState*> CallLanes::find(CommunicatorState& parent, const Lane& asked) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [lane, state] : made_)
      if (lane == asked) return state.get();
  }
  SLUICE_TRY(parent.check_callable());
  SLUICE_TRY_ASSIGN(const Lane lane, parent.runtime().complete_lane(asked));
  const std::uint64_t agreed = agreement_hash(lane);
  if (agreed == agreement_hash(parent.lane())) return &parent;
  std::shared_ptr<CommunicatorState> state = make(parent, lane, agreed);
  {
    const std::lock_guard lock(mutex_);
    made_.emplace_back(asked, state);
  }
  if (parent.broken()) state->mark_broken(parent.status());  // while it was made
  return state.get();
}

std::shared_ptr<CommunicatorState> CallLanes::make(CommunicatorState& parent, const Lane& lane,
                                                   std::uint64_t agreed) const {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [asked, state] : made_)
      if (agreement_hash(state->lane()) == agreed) return state;
  }
  Identity identity = parent.identity();
  identity.id = mix64(identity.id ^ mix64(agreed));
  identity.lane = lane;
  identity.parent = &parent;
  return parent.runtime().make_state(std::move(identity));
}

std::vector<CommunicatorState*> CallLanes::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<CommunicatorState*> states;
  for (const auto& [asked, state] : made_)
    if (std::find(states.begin(), states.end(), state.get()) == states.end()) states.push_back(state.get());
  return states;
}

void CallLanes::clear() {
  std::vector<std::pair<Lane, std::shared_ptr<CommunicatorState>>> ended;  // without the lock
  {
    const std::lock_guard lock(mutex_);
    ended.swap(made_);
  }
}

}  // namespace sluice::detail
