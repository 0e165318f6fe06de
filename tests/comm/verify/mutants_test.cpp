// Mutants: correct schedules and programs, each with one seeded fault. The verifier refuses a mutant, or the mutant is harmless:
// then it runs over the loop transport, with 100 seeds and order-sensitive input, and gives nothing wrong.
//
//   mutants_test [--seed N] [--mutants N]    mutant i of a kind has seed N + i; a failure prints its seed, and
//                                            `--seed THAT --mutants 1` makes it again.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string_view>

#include "base/rng.h"
#include "comm/algorithms/algorithms.h"
#include "comm/verify/verify.h"
#include "comm/verify/verify_program.h"
#include "tests/comm/verify/mutations.h"
#include "tests/support/loop_programs.h"
#include "tests/support/run_programs.h"

namespace sluice {
namespace {

struct Settings {
  std::uint64_t seed = 1;
  std::uint64_t mutants = 130;  // of each kind
};
Settings settings;  // set by main before any test runs

constexpr int kRunsOfAccepted = 100;

struct Tally {
  int made = 0;
  int refused = 0;
  int accepted = 0;
  int runs = 0;
  int wrong = 0;
};

void print_row(std::string_view kind, const Tally& tally) {
  std::printf("  %-28.*s %6d made %6d refused %6d accepted %8d runs of these %4d wrong\n",
              static_cast<int>(kind.size()), kind.data(), tally.made, tally.refused, tally.accepted, tally.runs,
              tally.wrong);
}

struct Base {
  Schedule schedule;
  Order order = Order::fast;
};

// A correct schedule of few ranks, drawn from the list.
Base draw_base(Rng& rng) {
  const auto all = all_algorithms();
  while (true) {
    const Algorithm& algorithm = all[rng.below(all.size())];
    AlgorithmRequest request{algorithm.collective, 2 + static_cast<int>(rng.below(5)), 0, Order::fast, {}};
    if (is_rooted(algorithm.collective))
      request.root = static_cast<Rank>(rng.below(static_cast<std::uint64_t>(request.ranks)));
    if (algorithm.supports_canonical(request.ranks) && rng.chance(0.5)) request.order = Order::canonical;
    auto schedule = algorithm.build(request);
    if (schedule.ok()) return {*std::move(schedule), request.order};
  }
}

// With every rank's windows mapped by the others, or none.
std::vector<Program> lowered(const Schedule& schedule, bool in_place, bool mapped) {
  const std::vector<bool> windows(mapped ? static_cast<std::size_t>(schedule.shape.ranks) : 0, true);
  std::vector<Program> programs;
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank)
    programs.push_back(*lower(schedule, rank, {in_place, windows}));
  return programs;
}

int credits_of(const std::vector<Program>& programs) {
  int credits = 1;
  for (const Program& program : programs) credits = std::max(credits, program.credits);
  return credits;
}

constexpr int kWindowMax = 3;

// With every window that the runs use, over three groups of slices: a proof holds for its window.
Status prove(const std::vector<Program>& programs, int slots) {
  for (int window = 1; window <= kWindowMax; ++window)
    for (const bool direct : {false, true}) SLUICE_TRY(verify_programs(programs, {slots, 3 * window, window, direct}));
  return {};
}

// Is a run's result what the order class promises? Canonical: the reference's bits. Fixed: exact on whole numbers, and the same
// bits at every rank of an all-reduce.
bool is_right(const ScheduleShape& shape, OrderClass order, const test::ScheduleRun& numbers,
              const test::Outputs& got) {
  if (!is_reduction(shape.collective) || order == OrderClass::canonical || numbers.numbers == test::Numbers::whole)
    return got == test::expected_outputs(shape, numbers);
  return shape.collective != Collective::all_reduce ||
         std::all_of(got.begin(), got.end(), [&](const std::vector<float>& one) { return one == got[0]; });
}

// Runs accepted programs many times; counts what is wrong.
void run_accepted(const std::vector<Program>& programs, OrderClass order, Order keeps, int slots, std::uint64_t seed,
                  Tally& tally) {
  for (int i = 0; i < kRunsOfAccepted; ++i) {
    Rng rng(mix64(seed) + static_cast<std::uint64_t>(i));
    test::ProgramsRun run;
    run.seed = rng.next();
    run.slots = slots;
    run.window = 1 + static_cast<int>(rng.below(kWindowMax));
    run.direct = rng.chance(0.5);
    run.slice_elements = 1 + rng.below(6);
    run.numbers.count = rng.below(40);
    run.numbers.seed = rng.next();
    run.numbers.in_place = programs[0].in_place;
    run.numbers.order = keeps;
    // Mostly order-sensitive; whole numbers tell where the order may be any.
    const bool whole = order == OrderClass::fixed && rng.chance(0.5);
    run.numbers.numbers = whole ? test::Numbers::whole : test::Numbers::order_sensitive;
    // Now and then long enough for messages that only describe what they send.
    if (i % 25 == 0) {
      run.slice_elements = 2100;
      run.numbers.count = 5000;
    }
    const auto got = i % 2 == 0 ? test::run_programs_on_loop(programs, run) : test::run_programs(programs, run);
    ++tally.runs;
    if (got.ok() && is_right(programs[0].shape, order, run.numbers, *got)) continue;
    ++tally.wrong;
    ADD_FAILURE() << "mutant of seed " << seed << " was accepted, but run " << i << " is wrong, on the "
                  << (i % 2 == 0 ? "loop transport, " : "dumb interpreter, ") << slots << " slots, window "
                  << run.window << ", " << run.numbers.count << " elements, slices of " << run.slice_elements
                  << ", schedule of " << programs.size() << " ranks " << name(programs[0].shape.collective)
                  << (got.ok() ? "" : ": " + got.error().text);
    return;
  }
}

// Proves the mutant in both readings of its memory and runs what is accepted.
void judge(const Schedule& mutant, const Base& base, std::uint64_t seed, Tally& tally) {
  ++tally.made;
  const auto derived = rederive(mutant);
  const auto proof = derived.ok() ? verify(*derived) : Result<Proof>(derived.error());
  if (!proof.ok()) {
    ++tally.refused;
    return;
  }
  ++tally.accepted;
  // A schedule that lost the canonical order is not used for it.
  for (const bool in_place : {false, true}) {
    if (in_place && !proof->in_place) continue;
    const std::vector<Program> programs = lowered(*derived, in_place, seed % 4 != 0);
    const int slots = credits_of(programs);
    const Status lowered_proof = prove(programs, slots);
    if (!lowered_proof.ok()) {
      ++tally.wrong;
      ADD_FAILURE() << "mutant of seed " << seed
                    << " was accepted as a schedule, but not lowered: " << lowered_proof.text() << "\n"
                    << print(*derived);
      return;
    }
    // Lost canonical order is a weaker class, not a fault: sums that are only `fixed` are then run as such.
    run_accepted(programs, base.order == Order::canonical ? proof->order : OrderClass::fixed, base.order, slots, seed,
                 tally);
  }
}

void mutate_schedules(std::string_view kind, ScheduleMutation mutation) {
  Tally tally;
  for (std::uint64_t seed = settings.seed; tally.made < static_cast<int>(settings.mutants); ++seed) {
    Rng rng(mix64(seed) ^ mix64(kind.size()));
    Base base = draw_base(rng);
    Schedule mutant = base.schedule;
    if (mutation(mutant, rng)) judge(mutant, base, seed, tally);
    if (::testing::Test::HasFailure()) break;
  }
  print_row(kind, tally);
  EXPECT_EQ(tally.wrong, 0);
}

TEST(ScheduleMutants, ADroppedStep) { mutate_schedules("dropped step", mutation::drop); }
TEST(ScheduleMutants, ADoubledStep) { mutate_schedules("doubled step", mutation::double_step); }
TEST(ScheduleMutants, SwappedNeighbours) { mutate_schedules("swapped neighbours", mutation::swap_neighbours); }
TEST(ScheduleMutants, ARedirectedTarget) { mutate_schedules("redirected target", mutation::redirect); }
TEST(ScheduleMutants, AWrongChunk) { mutate_schedules("wrong chunk", mutation::wrong_chunk); }
TEST(ScheduleMutants, AWrongSource) { mutate_schedules("wrong source", mutation::wrong_source); }
TEST(ScheduleMutants, SwappedSummands) { mutate_schedules("swapped summands", mutation::swap_summands); }
TEST(ScheduleMutants, AnotherTree) { mutate_schedules("another tree", mutation::other_tree); }
TEST(ScheduleMutants, AMomentCutInTwo) { mutate_schedules("moment cut in two", mutation::cut_moment); }
TEST(ScheduleMutants, MomentsJoined) { mutate_schedules("moments joined", mutation::join_moments); }

void mutate_programs(std::string_view kind, ProgramMutation mutation) {
  Tally tally;
  for (std::uint64_t seed = settings.seed; tally.made < static_cast<int>(settings.mutants); ++seed) {
    Rng rng(mix64(seed) ^ mix64(kind.size() + 1000));
    const Base base = draw_base(rng);
    const auto proof = verify(base.schedule);
    ASSERT_TRUE(proof.ok()) << proof.error().text;
    std::vector<Program> programs = lowered(base.schedule, rng.chance(0.5), rng.chance(0.75));
    int slots = credits_of(programs);
    if (!mutation(programs, rng, slots)) continue;
    ++tally.made;
    if (!prove(programs, slots).ok()) {
      ++tally.refused;
      continue;
    }
    ++tally.accepted;
    run_accepted(programs, base.order == Order::canonical ? proof->order : OrderClass::fixed, base.order, slots, seed,
                 tally);
    if (::testing::Test::HasFailure()) break;
  }
  print_row(kind, tally);
  EXPECT_EQ(tally.wrong, 0);
}

TEST(ProgramMutants, ADroppedWait) { mutate_programs("dropped wait", mutation::dropped_wait); }
TEST(ProgramMutants, AnEarlyRelease) { mutate_programs("early release", mutation::early_release); }
TEST(ProgramMutants, AMissingSignal) { mutate_programs("missing signal", mutation::missing_signal); }
TEST(ProgramMutants, FewerCredits) { mutate_programs("fewer credits", mutation::fewer_credits); }
TEST(ProgramMutants, SwappedSteps) { mutate_programs("swapped steps", mutation::swapped_steps); }
TEST(ProgramMutants, DescribedTooMuch) { mutate_programs("described too much", mutation::described_too_much); }
TEST(ProgramMutants, AWrongOffer) { mutate_programs("wrong offer", mutation::wrong_offer); }
TEST(ProgramMutants, AWrongHome) { mutate_programs("wrong home", mutation::wrong_home); }
TEST(ProgramMutants, ALentPlaceForgotten) { mutate_programs("lent place forgotten", mutation::not_lent); }
TEST(ProgramMutants, ADroppedClosingWait) { mutate_programs("dropped closing wait", mutation::dropped_closing); }
TEST(ProgramMutants, AWrongOperand) { mutate_programs("wrong operand", mutation::wrong_operand); }

// The judge itself: a wrong program that is called accepted is found wrong by the runs.
TEST(Mutants, WrongOnesAreFoundByTheRuns) {
  const auto ring =
      find_algorithm(Collective::all_reduce, "ring")->build({Collective::all_reduce, 4, 0, Order::fast, {}});
  Schedule mutant = *ring;
  std::swap(mutant.steps[5].from[1].chunk, mutant.steps[6].from[1].chunk);
  const std::vector<Program> programs = lowered(mutant, false, true);
  test::ProgramsRun run;
  run.numbers.count = 24;
  run.slots = credits_of(programs);
  const auto on_loop = test::run_programs_on_loop(programs, run);
  ASSERT_TRUE(on_loop.ok()) << on_loop.error().text;
  EXPECT_FALSE(is_right(mutant.shape, OrderClass::fixed, run.numbers, *on_loop));
  const auto dumb = test::run_programs(programs, run);
  ASSERT_TRUE(dumb.ok()) << dumb.error().text;
  EXPECT_FALSE(is_right(mutant.shape, OrderClass::fixed, run.numbers, *dumb));
}

bool take_number(std::string_view argument, std::string_view name, const char* value, std::uint64_t& into) {
  if (argument != name || value == nullptr) return false;
  const std::string_view text = value;
  return std::from_chars(text.data(), text.data() + text.size(), into).ec == std::errc();
}

}  // namespace
}  // namespace sluice

int main(int count, char** arguments) {
  testing::InitGoogleTest(&count, arguments);
  for (int i = 1; i < count; i += 2) {
    const char* value = i + 1 < count ? arguments[i + 1] : nullptr;
    if (sluice::take_number(arguments[i], "--seed", value, sluice::settings.seed)) continue;
    if (sluice::take_number(arguments[i], "--mutants", value, sluice::settings.mutants)) continue;
    std::fprintf(stderr, "usage: mutants_test [--seed N] [--mutants N]\n");
    return 2;
  }
  std::printf("mutants from seed %llu on, %llu of each kind\n", static_cast<unsigned long long>(sluice::settings.seed),
              static_cast<unsigned long long>(sluice::settings.mutants));
  return RUN_ALL_TESTS();
}
