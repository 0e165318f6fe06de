#include "comm/verify/verify_program.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "comm/schedule/places.h"
#include "comm/verify/post_condition.h"
#include "comm/verify/symbols.h"

namespace sluice {
namespace {

struct Value {
  Symbol symbol = kNoValue;
  int slice = -1;  // whose elements these are
};

struct Message {
  Value value;
  Buffer form = Buffer::input;
  int part = 0;            // of the sender's extent
  bool described = false;  // then the receiver finds the value at `place` of the sender
  Place place;
  int slice = 0;
  bool read = false;
};

// The messages of an ordered pair of ranks, and what each end knows of them from its own waits: nothing else may be relied on.
struct Flow {
  Rank from = 0;
  Rank to = 0;
  std::deque<Message> unreleased;
  std::uint64_t committed = 0;
  std::uint64_t released = 0;
  std::uint64_t room_known = 0;      // sender: so many may be committed in all
  std::uint64_t released_known = 0;  // sender: so many were released
  std::uint64_t ready_known = 0;     // receiver: so many were committed
  std::uint64_t described_until = 0;
  Message reserved;
  bool written = false;  // the reserved slot
};

// What a described message still names.
struct Named {
  std::size_t flow = 0;
  std::uint64_t message = 0;
};

struct RankState {
  std::vector<std::size_t> out_flows;  // indices of Machine::flows_, as Program::out_peers
  std::vector<std::size_t> in_flows;
  std::vector<Value> elements;                                // per slice: inputs, outputs
  std::vector<Value> scratch;                                 // per slice in the window
  std::map<std::pair<int, Place>, std::vector<Named>> named;  // by slice and place
  // The cursor.
  int group = 0;
  int tick = 0;
  int slice = 0;  // in the group
  std::uint32_t step = 0;
  std::uint32_t action = 0;
  bool in_step = false;
  std::size_t closing = 0;
  bool done = false;
};

enum class Ran : std::uint8_t { moved, blocked, done };

std::string_view word(Act act) {
  switch (act) {
    case Act::wait_ready: return "wait_ready";
    case Act::wait_room: return "wait_room";
    case Act::combine: return "combine";
    case Act::commit: return "commit";
    case Act::release: return "release";
    case Act::wait_released: return "wait_released";
  }
  return "unknown";
}

Error invalid(std::string text) { return {Code::invalid_argument, std::move(text)}; }

// Runs all ranks' programs, each until it has to wait, in turn.
class Machine {
 public:
  Machine(std::span<const Program> programs, const ProgramCheck& check)
      : programs_(programs), check_(check), shape_(programs[0].shape), symbols_(shape_) {}

  Status run() {
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) SLUICE_TRY(check_program(static_cast<Rank>(rank)));
    states_.resize(programs_.size());
    for (std::size_t rank = 0; rank < programs_.size(); ++rank) begin(static_cast<Rank>(rank));
    while (true) {
      bool moved = false;
      bool all_done = true;
      for (rank_ = 0; rank_ < shape_.ranks; ++rank_) {
        if (state().done) continue;
        SLUICE_TRY_ASSIGN(const Ran ran, run_rank());
        moved = moved || ran != Ran::blocked;
        all_done = all_done && ran == Ran::done;
      }
      if (all_done) break;
      if (!moved) return deadlock();
    }
    SLUICE_TRY(check_flows());
    return check_results();
  }

 private:
  const Program& program() const { return programs_[static_cast<std::size_t>(rank_)]; }
  RankState& state() { return states_[static_cast<std::size_t>(rank_)]; }
  int slice_now() { return state().group * check_.window + state().slice; }

  Status check_program(Rank rank) const;
  Status check_operand(const Program& program, const Operand& operand, bool target) const;
  Status check_action(const Program& program, const Action& action) const;
  void begin(Rank rank);
  std::size_t flow_between(Rank from, Rank to);

  Result<Ran> run_rank();
  bool next_step();
  bool is_empty(const ProgramStep& step, int slice) const;
  int parts_in(int slice) const;
  Result<Ran> run_action(const Action& action);
  Status combine(const CombineAction& action);
  Result<Value> take(const Operand& source);
  Status put(const Operand& target, const CombineAction& action, Value value);
  Status check_marks(const CombineAction& action) const;
  Status commit(Flow& flow);
  Status release(Flow& flow);
  Status finish();

  Place place_of(Rank rank, const Operand& operand) const;
  Value& value_at(Rank rank, Place place, int slice);
  Status fault(const std::string& what);
  Status deadlock();
  Status check_flows() const;
  Status check_results();

  std::span<const Program> programs_;
  const ProgramCheck& check_;
  ScheduleShape shape_;
  Symbols symbols_;
  std::vector<RankState> states_;
  std::vector<Flow> flows_;
  std::map<std::pair<Rank, Rank>, std::size_t> flow_index_;
  Rank rank_ = 0;                // that runs
  std::vector<Symbol> sources_;  // of the combine that runs
};

Status Machine::check_operand(const Program& program, const Operand& operand, bool target) const {
  if (operand.message) {
    const std::size_t flows = target ? program.out_peers.size() : program.in_peers.size();
    return operand.flow < flows
               ? Status()
               : Status(invalid("a message of flow " + std::to_string(operand.flow) + " of " + std::to_string(flows)));
  }
  int chunks = shape_.scratch_chunks;
  if (operand.buffer == Buffer::input) chunks = shape_.has_input(program.rank) ? shape_.input_chunks() : 0;
  if (operand.buffer == Buffer::output) chunks = shape_.has_output(program.rank) ? shape_.output_chunks() : 0;
  if (operand.chunk < 0 || operand.chunk >= chunks)
    return invalid("no place " + std::string(name(operand.buffer)) + "." + std::to_string(operand.chunk));
  if (target && operand.buffer == Buffer::input) return invalid("an input as a target");
  return {};
}

Status Machine::check_action(const Program& program, const Action& action) const {
  const bool out = action.act == Act::wait_room || action.act == Act::commit || action.act == Act::wait_released;
  const std::size_t flows = out ? program.out_peers.size() : program.in_peers.size();
  if (action.act == Act::combine)
    return action.index < program.combines.size()
               ? Status()
               : Status(invalid("combine " + std::to_string(action.index) + " does not exist"));
  return action.flow < flows ? Status()
                             : Status(invalid(std::string(word(action.act)) + " of flow " +
                                              std::to_string(action.flow) + " of " + std::to_string(flows)));
}

// That nothing of a program points outside of it.
Status Machine::check_program(Rank rank) const {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  const auto bad = [rank](const std::string& what) {
    return Status(invalid("rank " + std::to_string(rank) + ": " + what));
  };
  if (program.rank != rank || program.shape != shape_ || program.in_place != programs_[0].in_place ||
      program.levels != programs_[0].levels)
    return bad("the program is another rank's, or of another schedule");
  if (program.credits > check_.slots)
    return bad("needs flows of " + std::to_string(program.credits) + " slots, not " + std::to_string(check_.slots));
  const auto& begins = program.level_begin;
  if (begins.size() != static_cast<std::size_t>(program.levels) + 1 || begins.front() != 0 ||
      begins.back() != program.steps.size() || !std::is_sorted(begins.begin(), begins.end()))
    return bad("levels do not cover the steps");
  for (const auto* peers : {&program.out_peers, &program.in_peers})
    for (const Rank peer : *peers)
      if (peer < 0 || peer >= shape_.ranks || peer == rank) return bad("a flow with rank " + std::to_string(peer));
  for (const ProgramStep& step : program.steps) {
    if (step.first_action > program.actions.size() || step.actions > program.actions.size() - step.first_action)
      return bad("step " + std::to_string(step.schedule_step) + " has actions that do not exist");
    if (Status extent = check_operand(program, step.extent, false); !extent.ok() || step.extent.message)
      return bad("step " + std::to_string(step.schedule_step) + " has no extent");
  }
  for (const auto* actions : {&program.actions, &program.closing})
    for (const Action& action : *actions)
      if (Status status = check_action(program, action); !status.ok()) return bad(status.text());
  for (const CombineAction& action : program.combines) {
    if (action.from.empty() || action.to.empty()) return bad("a combine without sources or targets");
    for (const Operand& from : action.from)
      if (Status status = check_operand(program, from, false); !status.ok()) return bad(status.text());
    for (const Operand& to : action.to)
      if (Status status = check_operand(program, to, true); !status.ok()) return bad(status.text());
  }
  return {};
}

std::size_t Machine::flow_between(Rank from, Rank to) {
  const auto [at, added] = flow_index_.try_emplace({from, to}, flows_.size());
  if (added) {
    flows_.emplace_back();
    flows_.back().from = from;
    flows_.back().to = to;
  }
  return at->second;
}

void Machine::begin(Rank rank) {
  const Program& program = programs_[static_cast<std::size_t>(rank)];
  RankState& state = states_[static_cast<std::size_t>(rank)];
  for (const Rank peer : program.out_peers) state.out_flows.push_back(flow_between(rank, peer));
  for (const Rank peer : program.in_peers) state.in_flows.push_back(flow_between(peer, rank));
  state.elements.resize(static_cast<std::size_t>(check_.slices * (shape_.input_chunks() + shape_.output_chunks())));
  state.scratch.resize(static_cast<std::size_t>(check_.window * shape_.scratch_chunks));
  if (!shape_.has_input(rank)) return;
  for (int slice = 0; slice < check_.slices; ++slice)
    for (int chunk = 0; chunk < shape_.input_chunks(); ++chunk)
      value_at(rank, {rank, Buffer::input, chunk}, slice) = {symbols_.leaf(rank, chunk), slice};
}

Value& Machine::value_at(Rank rank, Place place, int slice) {
  RankState& state = states_[static_cast<std::size_t>(rank)];
  if (place.buffer == Buffer::scratch)
    return state.scratch[static_cast<std::size_t>(slice % check_.window * shape_.scratch_chunks + place.chunk)];
  if (programs_[0].in_place) place = in_place_name(shape_, place);
  const int per_slice = shape_.input_chunks() + shape_.output_chunks();
  const int at = place.chunk + (place.buffer == Buffer::output ? shape_.input_chunks() : 0);
  return state.elements[static_cast<std::size_t>(slice * per_slice + at)];
}

Place Machine::place_of(Rank rank, const Operand& operand) const { return {rank, operand.buffer, operand.chunk}; }

// The last slice is ragged: of several chunks only the first half has elements in it.
int Machine::parts_in(int slice) const {
  return check_.slices > 1 && slice == check_.slices - 1 ? (shape_.chunks + 1) / 2 : shape_.chunks;
}

bool Machine::is_empty(const ProgramStep& step, int slice) const {
  return part_of(shape_, place_of(rank_, step.extent)) >= parts_in(slice);
}

// Moves the cursor to the next step, in the order that comm/lower/program.h states. False: there is none left.
bool Machine::next_step() {
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

Result<Ran> Machine::run_rank() {
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

Result<Ran> Machine::run_action(const Action& action) {
  if (action.act == Act::combine) {
    SLUICE_TRY(combine(program().combines[action.index]));
    return Ran::moved;
  }
  const bool in = action.act == Act::wait_ready || action.act == Act::release;
  Flow& flow = flows_[in ? state().in_flows[action.flow] : state().out_flows[action.flow]];
  switch (action.act) {
    case Act::wait_ready:
      if (flow.unreleased.size() <= action.depth) return Ran::blocked;
      flow.ready_known = std::max(flow.ready_known, flow.released + action.depth + 1);
      break;
    case Act::wait_room: {
      const std::uint64_t slots = static_cast<std::uint64_t>(check_.slots);
      if (flow.committed - flow.released >= slots) return Ran::blocked;
      flow.room_known = flow.committed + 1;
      if (flow.committed >= slots) flow.released_known = std::max(flow.released_known, flow.committed + 1 - slots);
      break;
    }
    case Act::wait_released:
      if (flow.released < flow.described_until) return Ran::blocked;
      flow.released_known = flow.released;
      break;
    case Act::commit: SLUICE_TRY(commit(flow)); break;
    case Act::release: SLUICE_TRY(release(flow)); break;
    case Act::combine: break;
  }
  return Ran::moved;
}

Result<Value> Machine::take(const Operand& source) {
  if (!source.message) {
    const Place place = place_of(rank_, source);
    const Value value = value_at(rank_, place, slice_now());
    if (value.symbol == kNoValue) return fault(print(place) + " was never written").error();
    return value;
  }
  Flow& flow = flows_[state().in_flows[source.flow]];
  const std::string what =
      "message " + std::to_string(flow.released + source.depth) + " from rank " + std::to_string(flow.from);
  if (flow.released + source.depth >= flow.ready_known)
    return fault("reads " + what + " without having waited for it").error();
  Message& message = flow.unreleased[source.depth];
  if ((message.form == Buffer::scratch) != (source.buffer == Buffer::scratch))
    return fault(what + " is sent as a value of '" + std::string(name(message.form)) + "' and read as one of '" +
                 std::string(name(source.buffer)) + "'")
        .error();
  if (message.part != part_of(shape_, place_of(rank_, program().steps[state().step].extent)))
    return fault(what + " has the extent of part " + std::to_string(message.part) + ", another than the step's")
        .error();
  message.read = true;
  return message.described ? value_at(flow.from, message.place, message.slice) : message.value;
}

Status Machine::put(const Operand& target, const CombineAction& action, Value value) {
  value.symbol = symbols_.stored(value.symbol, target.buffer);
  if (!target.message) {
    const Place place = place_of(rank_, target);
    const Place named = program().in_place ? in_place_name(shape_, place) : place;
    const auto held = state().named.find({slice_now(), named});
    if (held != state().named.end())
      for (const Named& one : held->second)
        if (one.message >= flows_[one.flow].released_known)
          return fault("overwrites " + print(place) + ", which a described message to rank " +
                       std::to_string(flows_[one.flow].to) + " still names");
    value_at(rank_, place, slice_now()) = value;
    return {};
  }
  Flow& flow = flows_[state().out_flows[target.flow]];
  const std::string to = "to rank " + std::to_string(flow.to);
  if (flow.committed >= flow.room_known) return fault("writes a message " + to + " without having waited for room");
  if (flow.written) return fault("writes a message " + to + " twice");
  flow.written = true;
  flow.reserved = {
      value,       target.buffer, part_of(shape_, place_of(rank_, program().steps[state().step].extent)), false, {},
      slice_now(), false};
  if (!check_.direct || !target.direct) return {};
  if (action.from.size() != 1 || action.to.size() != 1 || action.from[0].message ||
      action.from[0].buffer == Buffer::scratch)
    return fault("describes something else than one input or output");
  const Place place = place_of(rank_, action.from[0]);
  flow.reserved.described = true;
  flow.reserved.place = place;
  flow.described_until = flow.committed + 1;
  state().named[{slice_now(), program().in_place ? in_place_name(shape_, place) : place}].push_back(
      {state().out_flows[target.flow], flow.committed});
  return {};
}

// Leaves and the final sum must be marked as what they are.
Status Machine::check_marks(const CombineAction& action) const {
  if (!is_reduction(shape_.collective) || shape_.ranks == 1) return {};
  const bool sums = action.from.size() > 1;
  for (std::size_t i = 0; i < action.from.size(); ++i)
    if (action.from[i].leaf != (sums && symbols_.is_any_leaf(sources_[i])))
      return invalid("source " + std::to_string(i) + " (" + symbols_.describe(sources_[i]) + ") is " +
                     (action.from[i].leaf ? "" : "not ") + "marked as a leaf");
  return {};
}

Status Machine::combine(const CombineAction& action) {
  sources_.clear();
  for (const Operand& source : action.from) {
    SLUICE_TRY_ASSIGN(const Value value, take(source));
    if (value.slice != slice_now())
      return fault("reads " + symbols_.describe(value.symbol) + " of slice " + std::to_string(value.slice));
    sources_.push_back(value.symbol);
  }
  if (Status marks = check_marks(action); !marks.ok()) return fault(marks.text());
  const Result<Symbol> sum = symbols_.combine(sources_, action.tree);
  if (!sum.ok()) return fault(sum.error().text);
  if (is_reduction(shape_.collective) && shape_.ranks > 1 &&
      action.final != (action.from.size() > 1 && symbols_.holds_all_ranks(*sum)))
    return fault(symbols_.describe(*sum) + " is " + (action.final ? "" : "not ") + "marked as final");
  for (const Operand& target : action.to) SLUICE_TRY(put(target, action, {*sum, slice_now()}));
  return {};
}

Status Machine::commit(Flow& flow) {
  if (!flow.written) return fault("commits a message to rank " + std::to_string(flow.to) + " that was not written");
  flow.unreleased.push_back(flow.reserved);
  flow.written = false;
  ++flow.committed;
  return {};
}

Status Machine::release(Flow& flow) {
  const std::string what = "message " + std::to_string(flow.released) + " from rank " + std::to_string(flow.from);
  if (flow.released >= flow.ready_known) return fault("releases " + what + " without having waited for it");
  if (!flow.unreleased.front().read) return fault("releases " + what + " without having read it");
  flow.unreleased.pop_front();
  ++flow.released;
  return {};
}

Status Machine::finish() {
  state().done = true;
  for (const std::size_t index : state().out_flows) {
    const Flow& flow = flows_[index];
    if (flow.written)
      return fault("ends with a message to rank " + std::to_string(flow.to) + " that it never committed");
    if (flow.described_until > flow.released_known)
      return fault("ends while rank " + std::to_string(flow.to) + " may still read what a message describes");
  }
  return {};
}

Status Machine::fault(const std::string& what) {
  const RankState& at = state();
  std::string where = "rank " + std::to_string(rank_);
  if (at.in_step) {
    const ProgramStep& step = program().steps[at.step];
    where += ", step " + std::to_string(step.schedule_step) + " of level " + std::to_string(step.level) + ", slice " +
             std::to_string(slice_now()) + ", action " + std::to_string(at.action);
    if (at.action < step.actions)
      where += " (" + std::string(word(program().actions[step.first_action + at.action].act)) + ")";
  }
  return invalid(where + ": " + what);
}

// No rank can go on: says what the first one waits for.
Status Machine::deadlock() {
  for (rank_ = 0; rank_ < shape_.ranks; ++rank_) {
    if (state().done) continue;
    if (!state().in_step)
      return fault("never ends: rank " + std::to_string(program().out_peers[program().closing[state().closing].flow]) +
                   " does not release what a message describes");
    const Action& action = program().actions[program().steps[state().step].first_action + state().action];
    const bool in = action.act == Act::wait_ready;
    const Rank peer = in ? program().in_peers[action.flow] : program().out_peers[action.flow];
    return fault("deadlock: waits for ever for " + std::string(in ? "a message from rank " : "room towards rank ") +
                 std::to_string(peer));
  }
  return {};
}

Status Machine::check_flows() const {
  for (const Flow& flow : flows_)
    if (!flow.unreleased.empty())
      return invalid("rank " + std::to_string(flow.to) + ": " + std::to_string(flow.unreleased.size()) +
                     " messages from rank " + std::to_string(flow.from) + " are never released");
  return {};
}

Status Machine::check_results() {
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

}  // namespace

Status verify_programs(std::span<const Program> programs, const ProgramCheck& check) {
  if (programs.empty() || programs.size() != static_cast<std::size_t>(programs[0].shape.ranks))
    return {Code::invalid_argument, "a proof needs the programs of all ranks, not " + std::to_string(programs.size())};
  if (check.slots < 1 || check.slices < 1 || check.window < 1)
    return {Code::invalid_argument, "a proof needs at least one slot, slice and slice in flight"};
  return Machine(programs, check).run();
}

}  // namespace sluice
