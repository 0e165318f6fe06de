#include "comm/verify/program_form.h"

#include <algorithm>
#include <string>

namespace sluice {
namespace {

Error invalid(std::string text) { return {Code::invalid_argument, std::move(text)}; }

Status check_operand(const Program& program, const Operand& operand, bool target) {
  const ScheduleShape& shape = program.shape;
  if (operand.message) {
    const std::size_t flows = target ? program.out_peers.size() : program.in_peers.size();
    const std::size_t offers = target ? program.in_peers.size() : program.out_peers.size();
    if (operand.flow >= flows)
      return invalid("a message of flow " + std::to_string(operand.flow) + " of " + std::to_string(flows));
    if (!operand.lent) return {};
    if (operand.offer >= offers)
      return invalid("an offer of flow " + std::to_string(operand.offer) + " of " + std::to_string(offers));
    if (target) return {};  // a source lies in this rank's memory
  }
  int chunks = shape.scratch_chunks;
  if (operand.buffer == Buffer::input) chunks = shape.has_input(program.rank) ? shape.input_chunks() : 0;
  if (operand.buffer == Buffer::output) chunks = shape.has_output(program.rank) ? shape.output_chunks() : 0;
  if (operand.chunk < 0 || operand.chunk >= chunks)
    return invalid("no place " + std::string(name(operand.buffer)) + "." + std::to_string(operand.chunk));
  if (target && operand.buffer == Buffer::input) return invalid("an input as a target");
  return {};
}

Status check_action(const Program& program, const Action& action) {
  const bool out = action.act == Act::wait_room || action.act == Act::commit || action.act == Act::wait_released ||
                   action.act == Act::offer;
  const std::size_t flows = out ? program.out_peers.size() : program.in_peers.size();
  if (action.act == Act::combine)
    return action.index < program.combines.size()
               ? Status()
               : Status(invalid("combine " + std::to_string(action.index) + " does not exist"));
  if (action.act == Act::offer && action.index >= program.offers.size())
    return invalid("offer " + std::to_string(action.index) + " does not exist");
  return action.flow < flows ? Status()
                             : Status(invalid(std::string(name(action.act)) + " of flow " +
                                              std::to_string(action.flow) + " of " + std::to_string(flows)));
}

}  // namespace

Status check_program_form(std::span<const Program> programs, Rank rank, int slots) {
  const Program& program = programs[static_cast<std::size_t>(rank)];
  const Program& first = programs[0];
  const auto bad = [rank](const std::string& what) {
    return Status(invalid("rank " + std::to_string(rank) + ": " + what));
  };
  if (program.rank != rank || program.shape != first.shape || program.in_place != first.in_place ||
      program.levels != first.levels)
    return bad("the program is another rank's, or of another schedule");
  if (program.credits > slots)
    return bad("needs flows of " + std::to_string(program.credits) + " slots, not " + std::to_string(slots));
  const auto& begins = program.level_begin;
  if (begins.size() != static_cast<std::size_t>(program.levels) + 1 || begins.front() != 0 ||
      begins.back() != program.steps.size() || !std::is_sorted(begins.begin(), begins.end()))
    return bad("levels do not cover the steps");
  for (const auto* peers : {&program.out_peers, &program.in_peers})
    for (const Rank peer : *peers)
      if (peer < 0 || peer >= program.shape.ranks || peer == rank)
        return bad("a flow with rank " + std::to_string(peer));
  for (const ProgramStep& step : program.steps) {
    if (step.first_action > program.actions.size() || step.actions > program.actions.size() - step.first_action)
      return bad("step " + std::to_string(step.schedule_step) + " has actions that do not exist");
    if (Status extent = check_operand(program, step.extent, false); !extent.ok() || step.extent.message)
      return bad("step " + std::to_string(step.schedule_step) + " has no extent");
  }
  for (const auto* actions : {&program.actions, &program.closing})
    for (const Action& action : *actions)
      if (Status status = check_action(program, action); !status.ok()) return bad(status.text());
  for (const Operand& place : program.offers)
    if (Status status = check_operand(program, place, true);
        !status.ok() || place.message || place.buffer != Buffer::output)
      return bad(status.ok() ? "an offer of something else than an output" : status.text());
  for (const CombineAction& action : program.combines) {
    if (action.from.empty() || action.to.empty()) return bad("a combine without sources or targets");
    for (const Operand& from : action.from)
      if (Status status = check_operand(program, from, false); !status.ok()) return bad(status.text());
    for (const Operand& to : action.to)
      if (Status status = check_operand(program, to, true); !status.ok()) return bad(status.text());
  }
  return {};
}

std::string_view name(Act act) {
  switch (act) {
    case Act::wait_ready: return "wait_ready";
    case Act::wait_room: return "wait_room";
    case Act::combine: return "combine";
    case Act::commit: return "commit";
    case Act::release: return "release";
    case Act::wait_released: return "wait_released";
    case Act::offer: return "offer";
  }
  return "unknown";
}

}  // namespace sluice
