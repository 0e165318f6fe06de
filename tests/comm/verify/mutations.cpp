#include "tests/comm/verify/mutations.h"

#include <algorithm>
#include <initializer_list>

namespace sluice::mutation {
namespace {

std::size_t draw_step(const Schedule& schedule, Rng& rng) { return rng.below(schedule.steps.size()); }

Place& draw_place(std::vector<Place>& places, Rng& rng) { return places[rng.below(places.size())]; }

Program& draw_program(std::vector<Program>& programs, Rng& rng) { return programs[rng.below(programs.size())]; }

void erase_action(Program& program, std::uint32_t at) {
  program.actions.erase(program.actions.begin() + at);
  for (ProgramStep& step : program.steps) {
    if (step.first_action <= at && at < step.first_action + step.actions)
      --step.actions;
    else if (step.first_action > at)
      --step.first_action;
  }
}

// One action of the given kinds; false: there is none.
bool drop_one_of(Program& program, Rng& rng, std::initializer_list<Act> kinds) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < program.actions.size(); ++i)
    if (std::find(kinds.begin(), kinds.end(), program.actions[i].act) != kinds.end()) found.push_back(i);
  if (found.empty()) return false;
  erase_action(program, found[rng.below(found.size())]);
  return true;
}

}  // namespace

bool drop(Schedule& schedule, Rng& rng) {
  schedule.steps.erase(schedule.steps.begin() + static_cast<std::ptrdiff_t>(draw_step(schedule, rng)));
  return true;
}

// The same step once more, at once or later.
bool double_step(Schedule& schedule, Rng& rng) {
  const std::size_t at = draw_step(schedule, rng);
  const std::size_t again = rng.chance(0.5) ? at + 1 : at + 1 + rng.below(schedule.steps.size() - at);
  Step copy = schedule.steps[at];
  copy.moment = -1;  // a moment of its own
  schedule.steps.insert(schedule.steps.begin() + static_cast<std::ptrdiff_t>(again), copy);
  for (std::size_t i = again + 1; i < schedule.steps.size(); ++i)
    schedule.steps[i].moment += 1 << 20;  // a cut moment becomes two
  return true;
}

bool swap_neighbours(Schedule& schedule, Rng& rng) {
  if (schedule.steps.size() < 2) return false;
  const std::size_t at = rng.below(schedule.steps.size() - 1);
  Step& a = schedule.steps[at];
  Step& b = schedule.steps[at + 1];
  if (a == b) return false;
  std::swap(a, b);
  std::swap(a.moment, b.moment);
  return true;
}

bool redirect(Schedule& schedule, Rng& rng) {
  Step& step = schedule.steps[draw_step(schedule, rng)];
  Place& target = draw_place(step.to, rng);
  const Place before = target;
  target.rank = static_cast<Rank>(rng.below(static_cast<std::uint64_t>(schedule.shape.ranks)));
  if (rng.chance(0.3)) target.buffer = target.buffer == Buffer::output ? Buffer::scratch : Buffer::output;
  if (rng.chance(0.5)) step.executor = target.rank;
  return !(target == before);
}

bool wrong_chunk(Schedule& schedule, Rng& rng) {
  Step& step = schedule.steps[draw_step(schedule, rng)];
  Place& place = draw_place(rng.chance(0.5) ? step.from : step.to, rng);
  const int before = place.chunk;
  const int chunks = place.buffer == Buffer::input    ? schedule.shape.input_chunks()
                     : place.buffer == Buffer::output ? schedule.shape.output_chunks()
                                                      : schedule.shape.scratch_chunks;
  place.chunk = static_cast<int>(rng.below(static_cast<std::uint64_t>(chunks)));
  return place.chunk != before;
}

bool wrong_source(Schedule& schedule, Rng& rng) {
  Step& step = schedule.steps[draw_step(schedule, rng)];
  Place& place = draw_place(step.from, rng);
  const Place before = place;
  place.rank = static_cast<Rank>(rng.below(static_cast<std::uint64_t>(schedule.shape.ranks)));
  if (rng.chance(0.3)) place.buffer = static_cast<Buffer>(rng.below(3));
  return !(place == before);
}

bool swap_summands(Schedule& schedule, Rng& rng) {
  Step& step = schedule.steps[draw_step(schedule, rng)];
  if (step.from.size() < 2) return false;
  std::swap(step.from[0], step.from[1 + rng.below(step.from.size() - 1)]);
  return true;
}

bool other_tree(Schedule& schedule, Rng& rng) {
  Step& step = schedule.steps[draw_step(schedule, rng)];
  if (step.from.size() < 3) return false;
  step.tree = step.tree == Tree::chain ? Tree::canonical : Tree::chain;
  return true;
}

bool cut_moment(Schedule& schedule, Rng& rng) {
  const std::size_t at = draw_step(schedule, rng);
  if (at == 0 || schedule.steps[at - 1].moment != schedule.steps[at].moment) return false;
  for (std::size_t i = at; i < schedule.steps.size(); ++i) schedule.steps[i].moment += 1 << 20;
  return true;
}

bool join_moments(Schedule& schedule, Rng& rng) {
  const std::size_t at = draw_step(schedule, rng);
  if (at == 0 || schedule.steps[at - 1].moment == schedule.steps[at].moment) return false;
  schedule.steps[at].moment = schedule.steps[at - 1].moment;
  return true;
}

bool dropped_wait(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  if (!program.closing.empty() && rng.chance(0.2)) {
    program.closing.erase(program.closing.begin() + static_cast<std::ptrdiff_t>(rng.below(program.closing.size())));
    return true;
  }
  return drop_one_of(program, rng, {Act::wait_ready, Act::wait_room});
}

bool early_release(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  std::vector<std::uint32_t> releases;
  for (std::uint32_t i = 1; i < program.actions.size(); ++i)
    if (program.actions[i].act == Act::release && program.actions[i - 1].act != Act::release) releases.push_back(i);
  if (releases.empty()) return false;
  const std::uint32_t at = releases[rng.below(releases.size())];
  std::swap(program.actions[at], program.actions[at - 1]);
  return true;
}

bool missing_signal(std::vector<Program>& programs, Rng& rng, int&) {
  return drop_one_of(draw_program(programs, rng), rng, {Act::commit, Act::release});
}

bool fewer_credits(std::vector<Program>& programs, Rng& rng, int& slots) {
  if (slots < 2) return false;
  slots = 1 + static_cast<int>(rng.below(static_cast<std::uint64_t>(slots) - 1));
  for (Program& program : programs) program.credits = std::min(program.credits, slots);
  return true;
}

// Two steps of a level in the other order.
bool swapped_steps(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  if (program.steps.size() < 2) return false;
  const std::size_t at = rng.below(program.steps.size() - 1);
  if (program.steps[at].level != program.steps[at + 1].level) return false;
  std::swap(program.steps[at], program.steps[at + 1]);
  return true;
}

// One of the sources and targets for which `is(operand, is_target)` holds; nullptr: there is none.
template <typename Is>
static Operand* draw_operand(Program& program, Rng& rng, Is is) {
  std::vector<Operand*> found;
  for (CombineAction& action : program.combines)
    for (auto* operands : {&action.from, &action.to})
      for (Operand& operand : *operands)
        if (is(operand, operands == &action.to)) found.push_back(&operand);
  return found.empty() ? nullptr : found[rng.below(found.size())];
}

bool described_too_much(std::vector<Program>& programs, Rng& rng, int&) {
  const auto copied = [](const Operand& one, bool target) { return target && one.message && !one.direct; };
  Operand* const operand = draw_operand(draw_program(programs, rng), rng, copied);
  if (operand == nullptr) return false;
  operand->direct = true;
  return true;
}

bool wrong_operand(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  if (program.combines.empty()) return false;
  CombineAction& action = program.combines[rng.below(program.combines.size())];
  Operand& operand =
      rng.chance(0.5) ? action.from[rng.below(action.from.size())] : action.to[rng.below(action.to.size())];
  const Operand before = operand;
  if (operand.message)
    operand.flow =
        static_cast<std::uint16_t>(rng.below(std::max<std::size_t>(program.in_peers.size(), program.out_peers.size())));
  else
    operand.chunk = static_cast<std::int32_t>(
        rng.below(static_cast<std::uint64_t>(std::max(program.shape.input_chunks(), program.shape.output_chunks()))));
  return !(operand == before);
}

bool wrong_offer(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  if (program.offers.empty()) return false;
  Operand& place = program.offers[rng.below(program.offers.size())];
  const std::int32_t before = place.chunk;
  place.chunk = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(program.shape.output_chunks())));
  return place.chunk != before;
}

// A rank looks for a result elsewhere than where it lent.
bool wrong_home(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  const auto lent = [](const Operand& one, bool target) { return !target && one.lent; };
  Operand* const source = draw_operand(program, rng, lent);
  if (source == nullptr) return false;
  const std::int32_t before = source->chunk;
  source->chunk = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(program.shape.output_chunks()) + 1));
  return source->chunk != before;
}

// One end forgets that a place is lent.
bool not_lent(std::vector<Program>& programs, Rng& rng, int&) {
  Operand* const operand =
      draw_operand(draw_program(programs, rng), rng, [](const Operand& one, bool) { return one.lent; });
  if (operand == nullptr) return false;
  operand->lent = false;
  return true;
}

bool dropped_closing(std::vector<Program>& programs, Rng& rng, int&) {
  Program& program = draw_program(programs, rng);
  if (program.closing.empty()) return false;
  program.closing.erase(program.closing.begin() + static_cast<std::ptrdiff_t>(rng.below(program.closing.size())));
  return true;
}

}  // namespace sluice::mutation
