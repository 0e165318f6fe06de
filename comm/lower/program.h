// A lowered program: what one rank does, in a few instructions that one interpreter runs over every transport.
//
//   Actions   wait (ready | room | released) . combine . signal (commit | release)
//   Order     a slice s is run by the same program over its own elements. Slices come in groups of `window`; in a group,
//             at tick T = 0, 1, ..., each slice j (ascending) runs the steps of level T - j: first what it sends for
//             others to execute (phase 0), then what it executes (phase 1), then what executors sent it (phase 2), each
//             in schedule order. That order is the same function at every rank, so a flow's messages are consumed in
//             the order in which they are sent, and the least unexecuted element of the whole order can always go
//             on: no deadlock with `credits` slots or more.
//   Skips     a step whose extent is empty in a slice is skipped at both ends.
//   Direct    a message may be described (the receiver reads the sender's window) only if `direct` says so: the sender
//             does not overwrite that place in this program. Such messages are waited for by wait_released at the end,
//             unless a result of the step that reads them comes back, which tells as much.
//   Lent      between ranks that map each other's windows, the owner of a remote target offers it in phase 0. If its
//             place lies in a window the executor writes there, and its message says only that it did. From the offer to
//             that message nobody else touches the place; a message that describes it is read by the same step.
//   Forms     an input or output place holds elements; a scratch place holds accumulator values under Order::canonical,
//             elements otherwise. A message has the form of its source place, or, when the sender executes the step,
//             of its target place.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/schedule/schedule.h"

namespace sluice {

enum class Act : std::uint8_t {
  wait_ready,     // until `depth + 1` messages are unreleased on in-flow `flow`
  wait_room,      // until out-flow `flow` has room
  combine,        // combines[index]
  commit,         // signal: the message in the reserved slot of out-flow `flow`
  release,        // signal: the `depth + 1` oldest messages of in-flow `flow` were read
  wait_released,  // until every described message of out-flow `flow` was released (only in the closing actions)
  offer,          // writes to the reserved slot of out-flow `flow` where offers[index] lies
};

struct Action {
  Act act = Act::combine;
  std::uint16_t flow = 0;   // index into Program::out_peers (room, commit, wait_released, offer), else in_peers
  std::uint16_t depth = 0;  // wait_ready, release
  std::uint32_t index = 0;  // combine, offer
  bool operator==(const Action&) const = default;
};

struct Operand {
  bool message = false;
  Buffer buffer = Buffer::input;  // a local place, or the remote place that a message comes from or goes to (its form)
  std::int32_t chunk = 0;         // of a local place, or the one that was lent
  std::uint16_t flow = 0;         // message only
  std::uint16_t depth = 0;        // message source, lent target: messages before it (its offer) when the step starts
  bool leaf = false;              // source: see Step::leaf
  bool direct = false;            // message target: may be described
  bool last = false;              // local or lent target: this program does not read it again, nor does its owner's
  bool lent = false;        // message target: its place is offered; message source: this rank offered buffer.chunk
  std::uint16_t offer = 0;  // lent: the flow of the offer, in_peers of a target, out_peers of a source
  bool operator==(const Operand&) const = default;
};

struct CombineAction {
  std::vector<Operand> from;
  std::vector<Operand> to;
  Tree tree = Tree::chain;
  bool final = false;
  bool operator==(const CombineAction&) const = default;
};

struct ProgramStep {
  std::int32_t schedule_step = 0;  // for messages to people, and the verifier
  std::int32_t level = 0;
  std::uint8_t phase = 0;
  Operand extent;  // a local place; the step moves as many values as it has in the slice
  std::uint32_t first_action = 0;
  std::uint32_t actions = 0;
  bool operator==(const ProgramStep&) const = default;
};

struct Program {
  ScheduleShape shape;
  Rank rank = 0;
  bool in_place = false;
  int levels = 0;
  int credits = 1;  // slots that every flow must have
  std::vector<Rank> out_peers;
  std::vector<Rank> in_peers;
  std::vector<ProgramStep> steps;          // by (level, phase, schedule_step)
  std::vector<std::uint32_t> level_begin;  // levels + 1 indices into steps
  std::vector<Action> actions;
  std::vector<CombineAction> combines;
  std::vector<Operand> offers;  // local places
  std::vector<Action> closing;  // wait_released per out-flow that may carry described messages
  bool operator==(const Program&) const = default;
};

struct LowerOptions {
  bool in_place = false;      // input and output are one memory; only for schedules proved so
  std::vector<bool> windows;  // per rank: it and this rank map each other's windows; empty: no rank. Alike at both
};

// Pure. Errors: invalid_argument.
Result<Program> lower(const Schedule& schedule, Rank rank, const LowerOptions& options);

}  // namespace sluice
