// Ranks that disagree, die, stall, leave or send nonsense, on the loop transport: never a hang, never silent wrong data, and the
// error names whom it should. Random programs with one fault each; a failing seed is replayed by SLUICE_TEST_SEED=N.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/log.h"
#include "base/rng.h"
#include "comm/executor/call.h"
#include "tests/comm/executor/loop_fixture.h"
#include "tests/support/sanitized.h"

namespace sluice {
namespace {

using test::CaseRun;
using test::CollectiveCase;
using test::LoopJob;

enum class Fault { none, kill, cut, stall, corrupt, abort, count, type, op, root, kind, order };
constexpr int kFaults = 12;
const char* word(Fault fault) {
  constexpr const char* kWords[] = {"none",  "kill", "cut", "stall", "corrupt", "abort",
                                    "count", "type", "op",  "root",  "kind",    "order"};
  return kWords[static_cast<int>(fault)];
}
bool disagrees(Fault fault) { return fault >= Fault::count; }

constexpr OperationKind kKinds[] = {
    OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::all_gather,   OperationKind::broadcast,
    OperationKind::reduce,     OperationKind::gather,         OperationKind::scatter,      OperationKind::all_to_all,
    OperationKind::barrier,    OperationKind::all_gather_v,   OperationKind::all_to_all_v, OperationKind::scatter_v};

CollectiveCase random_case(Rng& rng, int ranks) {
  CollectiveCase one;
  one.kind = kKinds[rng.below(std::size(kKinds))];
  one.ranks = ranks;
  one.type = rng.chance(0.5) ? DataType::float32 : DataType::int32;
  one.op = rng.chance(0.5) ? ReduceOp::sum : ReduceOp::max;
  one.count = rng.chance(0.1) ? 0 : rng.below(700);
  one.root = static_cast<Rank>(rng.below(static_cast<std::uint64_t>(ranks)));
  one.in_place = rng.chance(0.3) && one.kind != OperationKind::all_to_all_v;
  one.order = rng.chance(0.3) ? Order::canonical : Order::fast;
  one.seed = rng.next();
  return one;
}

// What one rank does differently.
CollectiveCase disagreeing(CollectiveCase one, Fault fault) {
  switch (fault) {
    case Fault::count: one.count += 1; break;
    case Fault::type: one.type = one.type == DataType::float32 ? DataType::int32 : DataType::float32; break;
    case Fault::op: one.op = one.op == ReduceOp::sum ? ReduceOp::max : ReduceOp::sum; break;
    case Fault::root: one.root = (one.root + 1) % one.ranks; break;
    case Fault::kind:
      one.kind = one.kind == OperationKind::all_reduce ? OperationKind::all_to_all : OperationKind::all_reduce;
      break;
    case Fault::order: one.order = one.order == Order::fast ? Order::canonical : Order::fast; break;
    default: break;
  }
  return one;
}

// A program of a few collectives; at one of them, one rank has the fault.
struct Program {
  int ranks = 2;
  std::vector<CollectiveCase> cases;
  Fault fault = Fault::none;
  Rank culprit = 0;
  Rank other = 1;  // the other end of a cut or corrupted link
  std::size_t at = 0;
  int after_steps = 0;
};

Program random_program(std::uint64_t seed) {
  Rng rng(seed);
  Program program;
  program.ranks = 2 + static_cast<int>(rng.below(5));
  program.fault = static_cast<Fault>(rng.below(kFaults));
  program.culprit = static_cast<Rank>(rng.below(static_cast<std::uint64_t>(program.ranks)));
  program.other = (program.culprit + 1) % program.ranks;
  const std::size_t cases = 1 + rng.below(4);
  for (std::size_t i = 0; i < cases; ++i) program.cases.push_back(random_case(rng, program.ranks));
  program.at = rng.below(cases);
  program.after_steps = static_cast<int>(rng.below(200));
  CollectiveCase last;  // whoever had returned from a call in which ranks disagreed learns it at the next one
  last.kind = OperationKind::barrier;
  last.ranks = program.ranks;
  program.cases.push_back(last);
  // Of a disagreement all ranks must be able to learn: an all-reduce of something, in the same order class.
  if (disagrees(program.fault)) {
    CollectiveCase& one = program.cases[program.at];
    one.kind = program.fault == Fault::root ? OperationKind::reduce : OperationKind::all_reduce;
    one.count = 1 + one.count;
  }
  return program;
}

bool names(const std::string& text, Rank rank) {
  return text.find("rank " + std::to_string(rank)) != std::string::npos;
}

// The codes that a rank may see for a fault.
bool is_right_error(const Program& program, const Status& status) {
  const bool culprit_named = names(status.text(), program.culprit);
  switch (program.fault) {
    case Fault::none: return false;
    case Fault::kill: return status.code() == Code::peer_lost && culprit_named;
    case Fault::cut: return status.code() == Code::peer_lost && (culprit_named || names(status.text(), program.other));
    case Fault::stall: return status.code() == Code::timeout && culprit_named;
    case Fault::corrupt:
      return status.code() == Code::mismatch && (culprit_named || names(status.text(), program.other));
    case Fault::abort: return status.code() == Code::aborted && culprit_named;
    default: return status.code() == Code::mismatch && culprit_named;
  }
}

void strike(LoopJob& job, const Program& program) {
  detail::LoopGroup& group = *job.made.group;
  switch (program.fault) {
    case Fault::kill: return group.kill(program.culprit, "killed by the test");
    case Fault::cut: return group.world().cut(program.culprit, program.other);
    case Fault::stall: return group.world().stall(program.culprit);
    case Fault::corrupt: return group.world().corrupt_next(program.culprit, program.other);
    case Fault::abort: return job.worlds[static_cast<std::size_t>(program.culprit)].abort("the test says so");
    default: return;
  }
}

// Runs the program of a seed. What is wrong, or an empty string; `struck` says whether any rank saw an error.
std::string run_seed(std::uint64_t seed, bool& struck) {
  const Program program = random_program(seed);
  LoopOptions loop;
  loop.seed = seed;
  LoopJob job(program.ranks, loop, "3s");
  std::vector<std::unique_ptr<CaseRun>> runs;
  std::vector<std::unique_ptr<CaseRun>> odd;  // what a disagreeing rank runs
  std::vector<std::vector<Work>> works(program.cases.size());
  for (std::size_t i = 0; i < program.cases.size(); ++i) {
    runs.push_back(std::make_unique<CaseRun>(program.cases[i]));
    odd.push_back(std::make_unique<CaseRun>(disagreeing(program.cases[i], program.fault)));
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      const bool differs = disagrees(program.fault) && i == program.at && rank == program.culprit;
      works[i].push_back((differs ? odd : runs)[i]->post(job.worlds[static_cast<std::size_t>(rank)]));
    }
  }
  constexpr int kStepsMax = 200'000;
  int step = 0;
  const auto unfinished = [&] {
    for (auto& of_case : works)
      for (Rank rank = 0; rank < program.ranks; ++rank)
        if (!of_case[static_cast<std::size_t>(rank)].test() &&
            !(program.fault == Fault::kill && rank == program.culprit))
          return true;
    return false;
  };
  for (; step < kStepsMax && unfinished(); ++step) {
    if (step == program.after_steps) strike(job, program);
    job.made.group->step();
  }
  if (step == kStepsMax) return "hangs";
  for (std::size_t i = 0; i < works.size(); ++i) {
    bool all_ok = true;
    for (Rank rank = 0; rank < program.ranks; ++rank) {
      if (program.fault == Fault::kill && rank == program.culprit) {
        all_ok = false;
        continue;
      }
      const Status status = works[i][static_cast<std::size_t>(rank)].wait();
      all_ok = all_ok && status.ok();
      struck = struck || !status.ok();
      if (!status.ok() && !is_right_error(program, status))
        return "case " + std::to_string(i) + " on rank " + std::to_string(rank) + " says " +
               std::string(name(status.code())) + ": " + status.text();
    }
    if (all_ok && !(disagrees(program.fault) && i == program.at))
      if (std::string wrong = runs[i]->check(); !wrong.empty()) return wrong;
  }
  if (disagrees(program.fault) && !struck)
    return "ranks disagreed in case " + std::to_string(program.at) + " and nobody noticed";
  return {};
}

TEST(FaultsOverLoop, EverySeedEndsInTheRightResultOrTheRightError) {
  set_log_level(LogLevel::off);
  const std::string wanted = environment_variable("SLUICE_TEST_SEED");
  const std::string count = environment_variable("SLUICE_TEST_SEEDS");
  const std::uint64_t first = wanted.empty() ? 1 : std::stoull(wanted);
  const std::uint64_t usual = test::kSanitized ? 1'500 : 10'000;
  const std::uint64_t last = wanted.empty() ? (count.empty() ? usual : std::stoull(count)) : first;
  std::map<std::string, std::pair<int, int>> seen;  // seeds of each fault, and how many of them some rank noticed
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    bool struck = false;
    const std::string wrong = run_seed(seed, struck);
    const Program program = random_program(seed);
    ASSERT_EQ(wrong, "") << "replay with SLUICE_TEST_SEED=" << seed << " (fault " << word(program.fault) << " of rank "
                         << program.culprit << " of " << program.ranks << " at case " << program.at << ")";
    auto& [seeds, noticed] = seen[word(program.fault)];
    ++seeds;
    noticed += struck ? 1 : 0;
  }
  for (const auto& [fault, counts] : seen)
    std::printf("  fault %-8s %5d seeds, noticed in %5d\n", fault.c_str(), counts.first, counts.second);
}

}  // namespace
}  // namespace sluice
