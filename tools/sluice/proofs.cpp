#include "tools/sluice/proofs.h"

#include <algorithm>
#include <charconv>

#include "comm/lower/program.h"
#include "comm/verify/verify_program.h"

namespace sluice::tools {
namespace {

constexpr int kGroups = 3;
constexpr int kWindow = 2;
constexpr int kSlotsAsked = 8;  // the default of the setting `slots`

// What a schedule is lowered for: memory that is one or two, ranks that map each other's windows or not.
struct Reading {
  bool in_place = false;
  bool windows = false;
  LowerOptions options(int ranks) const {
    return {in_place, std::vector<bool>(windows ? static_cast<std::size_t>(ranks) : 0, true)};
  }
};
constexpr Reading kReadings[] = {{false, false}, {false, true}, {true, false}, {true, true}};

Result<std::vector<Program>> lower_all(const Schedule& schedule, const Reading& reading) {
  std::vector<Program> programs;
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
    SLUICE_TRY_ASSIGN(Program program, lower(schedule, rank, reading.options(schedule.shape.ranks)));
    programs.push_back(std::move(program));
  }
  return programs;
}

Status prove_programs(const std::vector<Program>& programs) {
  int least_slots = 1;
  for (const Program& program : programs) least_slots = std::max(least_slots, program.credits);
  for (const int slots : {least_slots, std::max(least_slots, kSlotsAsked)})
    SLUICE_TRY(
        verify_programs(programs, {.slots = slots, .slices = kGroups * kWindow, .window = kWindow, .direct = true}));
  return {};
}

// A one-rank reading counts its own steps only; the numbers are for messages to people.
Program without_step_numbers(Program program) {
  for (ProgramStep& step : program.steps) step.schedule_step = 0;
  return program;
}

Status check_one_rank_reading(const ProofTask& task, const std::vector<Program>& programs, const Reading& reading) {
  for (Rank rank = 0; rank < task.ranks; ++rank) {
    SLUICE_TRY_ASSIGN(const Schedule own, task.algorithm->build({.collective = task.algorithm->collective,
                                                                 .ranks = task.ranks,
                                                                 .root = task.root,
                                                                 .order = task.order,
                                                                 .only = rank}));
    SLUICE_TRY_ASSIGN(const Program program, lower(own, rank, reading.options(task.ranks)));
    if (without_step_numbers(program) != without_step_numbers(programs[static_cast<std::size_t>(rank)]))
      return {Code::invalid_argument, "the one-rank reading of rank " + std::to_string(rank) +
                                          " lowers to another program than the whole schedule"};
  }
  return {};
}

std::vector<Rank> roots_for(Collective collective, int ranks) {
  if (!is_rooted(collective)) return {0};
  if (ranks > kRootsMax) return {0, 1, ranks / 2, ranks - 1};
  std::vector<Rank> all;
  for (Rank root = 0; root < ranks; ++root) all.push_back(root);
  return all;
}

}  // namespace

std::string describe(const ProofTask& task) {
  std::string text = std::string(name(task.algorithm->collective)) + " " + std::string(task.algorithm->name) + " on " +
                     std::to_string(task.ranks) + " ranks";
  if (is_rooted(task.algorithm->collective)) text += ", root " + std::to_string(task.root);
  if (is_reduction(task.algorithm->collective)) text += ", order " + std::string(name(task.order));
  return text;
}

Result<RankRange> parse_rank_range(const std::string& text) {
  const auto number = [](std::string_view word, int& value) {
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() && value >= 1 && value <= kRanksMax;
  };
  RankRange range;
  const auto dots = text.find("..");
  const bool well = dots == std::string::npos ? number(text, range.first) && number(text, range.last)
                                              : number(std::string_view(text).substr(0, dots), range.first) &&
                                                    number(std::string_view(text).substr(dots + 2), range.last);
  if (!well || range.last < range.first)
    return Error{Code::invalid_argument,
                 "--ranks is '" + text + "', but must be a number or A..B, from 1 to " + std::to_string(kRanksMax)};
  return range;
}

std::vector<ProofTask> proof_tasks(RankRange range, const std::string& collective, const std::string& algorithm) {
  std::vector<ProofTask> tasks;
  for (const Algorithm& one : all_algorithms()) {
    if ((!collective.empty() && name(one.collective) != collective) || (!algorithm.empty() && one.name != algorithm))
      continue;
    for (int ranks = range.first; ranks <= range.last; ++ranks) {
      if (!one.supports(ranks)) continue;
      for (const Rank root : roots_for(one.collective, ranks)) {
        tasks.push_back({&one, ranks, root, Order::fast});
        if (is_reduction(one.collective) && one.supports_canonical(ranks))
          tasks.push_back({&one, ranks, root, Order::canonical});
      }
    }
  }
  return tasks;
}

namespace {

// Proves the programs of every reading that differs from those before it, each of which `check` then looks at.
template <typename Check>
Status prove_readings(const Schedule& schedule, ProofReport& report, Check check) {
  std::vector<Program> last;
  for (const Reading& reading : kReadings) {
    if (reading.in_place && !report.proof.in_place) continue;
    SLUICE_TRY_ASSIGN(std::vector<Program> programs, lower_all(schedule, reading));
    if (programs == last) continue;  // no place is lent
    SLUICE_TRY(prove_programs(programs));
    SLUICE_TRY(check(programs, reading));
    ++report.programs;
    last = std::move(programs);
  }
  return {};
}

}  // namespace

Result<ProofReport> prove_schedule(const Schedule& schedule, bool with_programs) {
  ProofReport report{.programs = 0, .steps = schedule.steps.size(), .proof = {}};
  SLUICE_TRY_ASSIGN(report.proof, verify(schedule));
  if (!with_programs) return report;
  SLUICE_TRY(prove_readings(schedule, report, [](const auto&, const Reading&) { return Status(); }));
  return report;
}

Result<ProofReport> prove(const ProofTask& task, bool with_programs) {
  SLUICE_TRY_ASSIGN(const Schedule schedule, task.algorithm->build({.collective = task.algorithm->collective,
                                                                    .ranks = task.ranks,
                                                                    .root = task.root,
                                                                    .order = task.order,
                                                                    .only = {}}));
  ProofReport report{.programs = 0, .steps = schedule.steps.size(), .proof = {}};
  SLUICE_TRY_ASSIGN(report.proof, verify(schedule));
  if (task.order == Order::canonical && report.proof.order != OrderClass::canonical)
    return Error{Code::invalid_argument, "offers the canonical order, but its sums are in another"};
  if (!with_programs) return report;
  SLUICE_TRY(prove_readings(schedule, report, [&](const std::vector<Program>& programs, const Reading& reading) {
    return check_one_rank_reading(task, programs, reading);
  }));
  return report;
}

}  // namespace sluice::tools
