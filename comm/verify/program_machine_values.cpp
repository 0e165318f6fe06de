// What a combine reads and where its result goes: places, slots, described and lent memory.
#include "comm/schedule/places.h"
#include "comm/verify/program_machine.h"

namespace sluice {
namespace {

Error invalid(std::string text) { return {Code::invalid_argument, std::move(text)}; }

}  // namespace

std::pair<int, Place> ProgramMachine::key_of(const Place& place, int slice) const {
  return {slice, programs_[0].in_place ? in_place_name(shape_, place) : place};
}

// The owner alone may touch a place; from its offer until the executor's message, not even the owner.
Status ProgramMachine::check_not_lent(const Place& place) {
  const auto lent = state().lent.find(key_of(place, slice_now()));
  if (lent == state().lent.end()) return {};
  return fault("touches " + print(place) + ", which is lent to rank " + std::to_string(flows_[lent->second.flow].to));
}

Status ProgramMachine::check_unnamed(const Place& place, std::optional<std::size_t> but_of_flow) {
  const auto held = state().named.find(key_of(place, slice_now()));
  if (held == state().named.end()) return {};
  for (const Named& one : held->second)
    if (one.flow != but_of_flow && one.message >= flows_[one.flow].released_known)
      return fault((but_of_flow ? "lends " : "overwrites ") + print(place) + ", which a described message to rank " +
                   std::to_string(flows_[one.flow].to) + " still names");
  return {};
}

Result<ProgramMachine::Message*> ProgramMachine::message_of(std::uint16_t in_flow, std::uint16_t depth, Buffer form) {
  Flow& flow = flows_[state().in_flows[in_flow]];
  const std::string what =
      "message " + std::to_string(flow.released + depth) + " from rank " + std::to_string(flow.from);
  if (flow.released + depth >= flow.ready_known)
    return fault("reads " + what + " without having waited for it").error();
  if (flow.released + depth < flow.told)
    return fault("reads " + what + " again, after it told that it has read it").error();
  Message& message = flow.unreleased[depth];
  if ((message.form == Buffer::scratch) != (form == Buffer::scratch))
    return fault(what + " is sent as a value of '" + std::string(name(message.form)) + "' and read as one of '" +
                 std::string(name(form)) + "'")
        .error();
  if (message.part != part_of(shape_, place_of(rank_, program().steps[state().step].extent)))
    return fault(what + " has the extent of part " + std::to_string(message.part) + ", another than the step's")
        .error();
  message.read = true;
  return &message;
}

Result<ProgramMachine::Value> ProgramMachine::take(const Operand& source) {
  if (!source.message) {
    const Place place = place_of(rank_, source);
    SLUICE_TRY(check_not_lent(place));
    const Value value = value_at(rank_, place, slice_now());
    if (value.symbol == kNoValue) return fault(print(place) + " was never written").error();
    return value;
  }
  SLUICE_TRY_ASSIGN(const Message* const message, message_of(source.flow, source.depth, source.buffer));
  if (message->offered) return fault("reads an offer as if it were a value").error();
  const Rank from = flows_[state().in_flows[source.flow]].from;
  return message->described ? value_at(from, message->place, message->slice) : message->value;
}

// The executor wrote the result to the place that this rank had lent.
Status ProgramMachine::take_home(const Message& result, const CombineAction& action) {
  const bool copies = action.from.size() == 1 && action.to.size() == 1 && !action.to[0].message;
  if (!copies || !action.from[0].lent) return fault("reads a result that was written where another step lent");
  const Operand& from = action.from[0];
  const auto home = key_of(place_of(rank_, action.to[0]), slice_now());
  if (key_of(place_of(rank_, from), slice_now()) != home ||
      program().out_peers[from.offer] != program().in_peers[from.flow])
    return fault("takes home " + print(place_of(rank_, action.to[0])) + ", but looks for it at " +
                 print(place_of(rank_, from)));
  if (state().lent.erase(home) == 0 || home != key_of(result.place, result.slice))
    return fault("takes home " + print(place_of(rank_, action.to[0])) + ", but " + print(result.place) +
                 " was written");
  return {};
}

Status ProgramMachine::put(const Operand& target, const CombineAction& action, Value value) {
  value.symbol = symbols_.stored(value.symbol, target.buffer);
  if (target.message) return put_message(target, action, value);
  const Place place = place_of(rank_, target);
  SLUICE_TRY(check_not_lent(place));
  SLUICE_TRY(check_unnamed(place, std::nullopt));
  value_at(rank_, place, slice_now()) = value;
  return {};
}

Status ProgramMachine::reserve(Flow& flow, Buffer form, Value value) {
  const std::string to = "to rank " + std::to_string(flow.to);
  if (flow.committed >= flow.room_known) return fault("writes a message " + to + " without having waited for room");
  if (flow.written) return fault("writes a message " + to + " twice");
  flow.written = true;
  flow.reserved = {};
  flow.reserved.value = value;
  flow.reserved.form = form;
  flow.reserved.part = part_of(shape_, place_of(rank_, program().steps[state().step].extent));
  flow.reserved.slice = slice_now();
  return {};
}

Status ProgramMachine::put_message(const Operand& target, const CombineAction& action, Value value) {
  const std::size_t index = state().out_flows[target.flow];
  SLUICE_TRY(reserve(flows_[index], target.buffer, value));
  if (target.lent) return put_lent(target, flows_[index]);
  return check_.direct && target.direct ? describe(action, index) : Status();
}

Status ProgramMachine::describe(const CombineAction& action, std::size_t index) {
  if (action.from.size() != 1 || action.to.size() != 1 || action.from[0].message ||
      action.from[0].buffer == Buffer::scratch)
    return fault("describes something else than one input or output");
  Flow& flow = flows_[index];
  flow.reserved.described = true;
  flow.reserved.place = place_of(rank_, action.from[0]);
  flow.described_until = flow.committed + 1;
  state().named[key_of(flow.reserved.place, slice_now())].push_back({index, flow.committed});
  return {};
}

Status ProgramMachine::offer(const Action& action) {
  const std::size_t index = state().out_flows[action.flow];
  const Operand& operand = program().offers[action.index];
  const Place place = place_of(rank_, operand);
  SLUICE_TRY(reserve(flows_[index], operand.buffer, {}));
  SLUICE_TRY(check_not_lent(place));
  SLUICE_TRY(check_unnamed(place, index));  // what its borrower reads, it reads first
  flows_[index].reserved.offered = true;
  flows_[index].reserved.place = place;
  if (check_.direct) state().lent[key_of(place, slice_now())] = {index, flows_[index].committed};
  return {};
}

// Writes the result of the reserved message of `out` to the place that its receiver lent.
Status ProgramMachine::put_lent(const Operand& target, Flow& out) {
  SLUICE_TRY_ASSIGN(const Message* const offer, message_of(target.offer, target.depth, target.buffer));
  const Flow& in = flows_[state().in_flows[target.offer]];
  if (!offer->offered || in.from != out.to)
    return fault("writes to what rank " + std::to_string(out.to) + " did not lend");
  for (std::size_t i = 0; i < target.depth; ++i)
    if (!in.unreleased[i].read)
      return fault("writes to " + print(offer->place) + " before it has read what came before the offer");
  if (offer->slice != slice_now()) return fault("writes to a place of slice " + std::to_string(offer->slice));
  if (!check_.direct) return {};
  value_at(in.from, offer->place, offer->slice) = out.reserved.value;
  out.reserved.delivered = true;
  out.reserved.place = offer->place;
  return {};
}

// Leaves and the final sum must be marked as what they are.
Status ProgramMachine::check_marks(const CombineAction& action) const {
  if (!is_reduction(shape_.collective) || shape_.ranks == 1) return {};
  const bool sums = action.from.size() > 1;
  for (std::size_t i = 0; i < action.from.size(); ++i)
    if (action.from[i].leaf != (sums && symbols_.is_any_leaf(sources_[i])))
      return invalid("source " + std::to_string(i) + " (" + symbols_.describe(sources_[i]) + ") is " +
                     (action.from[i].leaf ? "" : "not ") + "marked as a leaf");
  return {};
}

Status ProgramMachine::combine(const CombineAction& action) {
  sources_.clear();
  for (const Operand& source : action.from) {
    if (source.message) {
      SLUICE_TRY_ASSIGN(const Message* const message, message_of(source.flow, source.depth, source.buffer));
      if (message->delivered) return take_home(*message, action);
    }
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

}  // namespace sluice
