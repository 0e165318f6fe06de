#include "comm/verify/program_machine.h"

#include <algorithm>

#include "comm/schedule/places.h"
#include "comm/verify/post_condition.h"
#include "comm/verify/program_form.h"

namespace sluice {
namespace {

Error invalid(std::string text) { return {Code::invalid_argument, std::move(text)}; }

}  // namespace

Status ProgramMachine::run() {
  SLUICE_TRY(begin_all());
  while (true) {
    bool moved = false;
    bool all_done = true;
    for (Rank rank = 0; rank < shape_.ranks; ++rank) {
      if (done(rank)) continue;
      SLUICE_TRY_ASSIGN(const bool went, step(rank));
      moved = moved || went;
      all_done = all_done && done(rank);
    }
    if (all_done) break;
    if (!moved) return deadlock();
  }
  return check_end();
}

Status ProgramMachine::begin_all() {
  for (std::size_t rank = 0; rank < programs_.size(); ++rank)
    SLUICE_TRY(check_program_form(programs_, static_cast<Rank>(rank), check_.slots));
  states_.resize(programs_.size());
  for (std::size_t rank = 0; rank < programs_.size(); ++rank) begin(static_cast<Rank>(rank));
  return {};
}

Result<bool> ProgramMachine::step(Rank rank) {
  rank_ = rank;
  SLUICE_TRY_ASSIGN(const Ran ran, run_rank());
  return ran != Ran::blocked;
}

Status ProgramMachine::check_end() {
  SLUICE_TRY(check_flows());
  return check_results();
}

Rank ProgramMachine::waits_for(Rank rank) const {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  const RankState& at = states_[static_cast<std::size_t>(rank)];
  if (!at.in_step && at.closing == program.closing.size()) return -1;
  const Action& action =
      at.in_step ? program.actions[program.steps[at.step].first_action + at.action] : program.closing[at.closing];
  return (action.act == Act::wait_ready ? program.in_peers : program.out_peers)[action.flow];
}

bool ProgramMachine::is_there(const Flow& flow, std::size_t depth) const {
  if (flow.unreleased.size() <= depth) return false;
  return links_ == nullptr || links_->arrived(flow.from, flow.to) > flow.released + depth;
}

bool ProgramMachine::has_room(const Flow& flow) const {
  if (links_ != nullptr) return links_->has_room(flow.from, flow.to);
  return flow.committed - flow.released < static_cast<std::uint64_t>(check_.slots);
}

std::size_t ProgramMachine::flow_between(Rank from, Rank to) {
  const auto [at, added] = flow_index_.try_emplace({from, to}, flows_.size());
  if (added) {
    flows_.emplace_back();
    flows_.back().from = from;
    flows_.back().to = to;
  }
  return at->second;
}

void ProgramMachine::begin(Rank rank) {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  RankState& state = states_[static_cast<std::size_t>(rank)];
  for (const Rank peer : program.out_peers) state.out_flows.push_back(flow_between(rank, peer));
  for (const Rank peer : program.in_peers) state.in_flows.push_back(flow_between(peer, rank));
  for (const Rank peer : program.out_peers) flow_between(peer, rank);  // the way back of each, so that it is there
  for (const Rank peer : program.in_peers) flow_between(rank, peer);
  state.elements.resize(static_cast<std::size_t>(check_.slices * (shape_.input_chunks() + shape_.output_chunks())));
  state.scratch.resize(static_cast<std::size_t>(check_.window * shape_.scratch_chunks));
  if (!shape_.has_input(rank)) return;
  for (int slice = 0; slice < check_.slices; ++slice)
    for (int chunk = 0; chunk < shape_.input_chunks(); ++chunk)
      value_at(rank, {rank, Buffer::input, chunk}, slice) = {symbols_.leaf(rank, chunk), slice};
}

ProgramMachine::Value& ProgramMachine::value_at(Rank rank, Place place, int slice) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  if (place.buffer == Buffer::scratch)
    return state.scratch[static_cast<std::size_t>(slice % check_.window * shape_.scratch_chunks + place.chunk)];
  if (programs_[0].in_place) place = in_place_name(shape_, place);
  const int per_slice = shape_.input_chunks() + shape_.output_chunks();
  const int at = place.chunk + (place.buffer == Buffer::output ? shape_.input_chunks() : 0);
  return state.elements[static_cast<std::size_t>(slice * per_slice + at)];
}

Place ProgramMachine::place_of(Rank rank, const Operand& operand) const {
  return {rank, operand.buffer, operand.chunk};
}

// The last slice is ragged: of several chunks only the first half has elements in it.
int ProgramMachine::parts_in(int slice) const {
  return check_.slices > 1 && slice == check_.slices - 1 ? (shape_.chunks + 1) / 2 : shape_.chunks;
}

bool ProgramMachine::is_empty(const ProgramStep& step, int slice) const {
  return part_of(shape_, place_of(rank_, step.extent)) >= parts_in(slice);
}

// Moves the cursor to the next step, in the order that comm/lower/program.h states. False: there is none left.
bool ProgramMachine::next_step() {
  RankState& at = state();
  for (; at.group * check_.window < check_.slices; ++at.group, at.tick = 0) {
    const int slices = std::min(check_.window, check_.slices - at.group * check_.window);
    for (; at.tick < program().levels + slices - 1; ++at.tick, at.slice = 0)
      for (; at.slice < slices; ++at.slice, at.step = 0) {
        const int level = at.tick - at.slice;
        if (level < 0 || level >= program().levels) continue;
        const std::uint32_t first = program().level_begin[static_cast<std::size_t>(level)];
        const std::uint32_t end = program().level_begin[static_cast<std::size_t>(level) + 1];
        for (at.step = std::max(at.step, first); at.step < end; ++at.step)
          if (!is_empty(program().steps[at.step], slice_now())) return true;
      }
    at.slice = 0;
  }
  return false;
}

Result<ProgramMachine::Ran> ProgramMachine::run_rank() {
  RankState& at = state();
  for (bool moved = false;; moved = true) {
    const Ran stopped = moved ? Ran::moved : Ran::blocked;
    if (!at.in_step && next_step()) {
      at.in_step = true;
      at.action = 0;
    }
    if (at.in_step) {
      const ProgramStep& step = program().steps[at.step];
      if (at.action == step.actions) {
        at.in_step = false;
        ++at.step;
        continue;
      }
      SLUICE_TRY_ASSIGN(const Ran ran, run_action(program().actions[step.first_action + at.action]));
      if (ran == Ran::blocked) return stopped;
      ++at.action;
      continue;
    }
    if (at.closing == program().closing.size()) {
      SLUICE_TRY(finish());
      return Ran::done;
    }
    SLUICE_TRY_ASSIGN(const Ran ran, run_action(program().closing[at.closing]));
    if (ran == Ran::blocked) return stopped;
    ++at.closing;
  }
}

Result<ProgramMachine::Ran> ProgramMachine::run_action(const Action& action) {
  if (action.act == Act::combine) {
    SLUICE_TRY(combine(program().combines[action.index]));
    return Ran::moved;
  }
  if (action.act == Act::offer) {
    SLUICE_TRY(offer(action));
    return Ran::moved;
  }
  const bool in = action.act == Act::wait_ready || action.act == Act::release;
  Flow& flow = flows_[in ? state().in_flows[action.flow] : state().out_flows[action.flow]];
  switch (action.act) {
    case Act::wait_ready:
      if (!is_there(flow, action.depth)) return Ran::blocked;
      flow.ready_known = std::max(flow.ready_known, flow.released + action.depth + 1);
      learn(flow, action.depth);
      break;
    case Act::wait_room: {
      const std::uint64_t slots = static_cast<std::uint64_t>(check_.slots);
      if (!has_room(flow)) return Ran::blocked;
      flow.room_known = flow.committed + 1;
      if (flow.committed >= slots) flow.released_known = std::max(flow.released_known, flow.committed + 1 - slots);
      break;
    }
    case Act::wait_released:
      if (flow.released < flow.described_until) return Ran::blocked;
      flow.released_known = flow.released;
      break;
    case Act::commit: SLUICE_TRY(commit(flow)); break;
    case Act::release:
      for (int i = 0; i <= action.depth; ++i) SLUICE_TRY(release(flow));
      break;
    case Act::offer:
    case Act::combine: break;
  }
  return Ran::moved;
}

// What a message tells of those that went the other way.
void ProgramMachine::learn(const Flow& flow, std::size_t depth) {
  Flow& back = flows_[flow_between(flow.to, flow.from)];
  back.released_known = std::max(back.released_known, flow.unreleased[depth].read_before);
}

Status ProgramMachine::commit(Flow& flow) {
  if (!flow.written) return fault("commits a message to rank " + std::to_string(flow.to) + " that was not written");
  Flow& back = flows_[flow_between(flow.to, flow.from)];
  back.told = back.released;
  for (std::size_t i = 0; i < back.unreleased.size() && back.unreleased[i].read; ++i) ++back.told;
  flow.reserved.read_before = back.told;
  flow.unreleased.push_back(flow.reserved);
  flow.written = false;
  ++flow.committed;
  if (links_ != nullptr) links_->commit(flow.from, flow.to);
  return {};
}

Status ProgramMachine::release(Flow& flow) {
  const std::string what = "message " + std::to_string(flow.released) + " from rank " + std::to_string(flow.from);
  if (flow.released >= flow.ready_known) return fault("releases " + what + " without having waited for it");
  if (!flow.unreleased.front().read) return fault("releases " + what + " without having read it");
  flow.unreleased.pop_front();
  ++flow.released;
  if (links_ != nullptr) links_->release(flow.from, flow.to);
  return {};
}

Status ProgramMachine::finish() {
  state().done = true;
  if (!state().lent.empty()) return fault("ends while " + print(state().lent.begin()->first.second) + " is lent");
  for (const std::size_t index : state().out_flows) {
    const Flow& flow = flows_[index];
    if (flow.written)
      return fault("ends with a message to rank " + std::to_string(flow.to) + " that it never committed");
    if (flow.described_until > flow.released_known)
      return fault("ends while rank " + std::to_string(flow.to) + " may still read what a message describes");
  }
  return {};
}

Status ProgramMachine::fault(const std::string& what) {
  const RankState& at = state();
  std::string where = "rank " + std::to_string(rank_);
  if (at.in_step) {
    const ProgramStep& step = program().steps[at.step];
    where += ", step " + std::to_string(step.schedule_step) + " of level " + std::to_string(step.level) + ", slice " +
             std::to_string(slice_now()) + ", action " + std::to_string(at.action);
    if (at.action < step.actions)
      where += " (" + std::string(name(program().actions[step.first_action + at.action].act)) + ")";
  }
  return invalid(where + ": " + what);
}

// No rank can go on: says what the first one waits for.
Status ProgramMachine::deadlock() {
  for (rank_ = 0; rank_ < shape_.ranks; ++rank_) {
    if (state().done) continue;
    const Rank peer = waits_for(rank_);
    if (!state().in_step)
      return fault("never ends: rank " + std::to_string(peer) + " does not release what a message describes");
    const bool in =
        program().actions[program().steps[state().step].first_action + state().action].act == Act::wait_ready;
    return fault("deadlock: waits for ever for " + std::string(in ? "a message from rank " : "room towards rank ") +
                 std::to_string(peer));
  }
  return {};
}

Status ProgramMachine::check_flows() const {
  for (const Flow& flow : flows_)
    if (!flow.unreleased.empty())
      return invalid("rank " + std::to_string(flow.to) + ": " + std::to_string(flow.unreleased.size()) +
                     " messages from rank " + std::to_string(flow.from) + " are never released");
  return {};
}

Status ProgramMachine::check_results() {
  for (int slice = 0; slice < check_.slices; ++slice) {
    OrderClass order = OrderClass::fixed;
    const auto at = [&](Rank rank, int chunk) {
      const Value value = value_at(rank, {rank, Buffer::output, chunk}, slice);
      return value.slice == slice ? value.symbol : kNoValue;
    };
    Status status = check_post_condition(shape_, symbols_, at, parts_in(slice), order);
    if (!status.ok()) return invalid("slice " + std::to_string(slice) + ": " + status.text());
  }
  return {};
}

}  // namespace sluice
