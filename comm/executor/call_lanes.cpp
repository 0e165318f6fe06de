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

bool CallLanes::Key::is_of(const Lane& asked) const {
  return name == asked.name && priority == asked.priority && weight == asked.weight;
}

Result<CommunicatorState*> CallLanes::find(CommunicatorState& parent, const Lane& asked) {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, state] : made_)
      if (key.is_of(asked)) return state == nullptr ? &parent : state.get();
  }
  SLUICE_TRY(parent.check_callable());
  SLUICE_TRY_ASSIGN(const Lane lane, parent.runtime().complete_lane(asked));
  const std::uint64_t agreed = agreement_hash(lane);
  const bool own = agreed == agreement_hash(parent.lane());
  std::shared_ptr<CommunicatorState> state = own ? nullptr : make(parent, lane, agreed);
  {
    const std::lock_guard lock(mutex_);
    made_.emplace_back(Key{asked.name, asked.priority, asked.weight}, state);
  }
  if (own) return &parent;
  if (parent.broken()) state->mark_broken(parent.status());  // while it was made
  return state.get();
}

// One lane that was asked for in two ways is one.
std::shared_ptr<CommunicatorState> CallLanes::make(CommunicatorState& parent, const Lane& lane,
                                                   std::uint64_t agreed) const {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, state] : made_)
      if (state != nullptr && agreement_hash(state->lane()) == agreed) return state;
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
  for (const auto& [key, state] : made_)
    if (state != nullptr && std::find(states.begin(), states.end(), state.get()) == states.end())
      states.push_back(state.get());
  return states;
}

void CallLanes::clear() {
  Made ended;  // without the lock
  {
    const std::lock_guard lock(mutex_);
    ended.swap(made_);
  }
}

}  // namespace sluice::detail
