// Lowered programs: proved and run for all algorithms, then broken one action at a time.
#include "comm/verify/verify_program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "comm/algorithms/algorithms.h"
#include "tests/support/run_programs.h"

namespace sluice {
namespace {

// With every rank's windows mapped by the others, or none.
std::vector<Program> lowered(const Schedule& schedule, bool in_place, bool mapped) {
  const std::vector<bool> windows(mapped ? static_cast<std::size_t>(schedule.shape.ranks) : 0, true);
  std::vector<Program> programs;
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
    auto program = lower(schedule, rank, {in_place, windows});
    EXPECT_TRUE(program.ok()) << program.error().text;
    programs.push_back(*std::move(program));
  }
  return programs;
}

constexpr std::pair<bool, bool> kReadings[] = {{false, false}, {false, true}, {true, false}, {true, true}};

int credits_of(const std::vector<Program>& programs) {
  int credits = 1;
  for (const Program& program : programs) credits = std::max(credits, program.credits);
  return credits;
}

template <typename Use>
void each_schedule(int ranks_max, Use use) {
  for (const Algorithm& algorithm : all_algorithms())
    for (int ranks = 1; ranks <= ranks_max; ++ranks)
      for (const Order order : {Order::fast, Order::canonical}) {
        if (order == Order::canonical && !algorithm.supports_canonical(ranks)) continue;
        const Rank root = is_rooted(algorithm.collective) ? ranks / 2 : 0;
        const auto schedule = algorithm.build({algorithm.collective, ranks, root, order, {}});
        ASSERT_TRUE(schedule.ok());
        SCOPED_TRACE(schedule->name + ", " + std::to_string(ranks) + " ranks, " + std::string(name(order)));
        use(*schedule, order);
      }
}

TEST(VerifyPrograms, ProvesEveryAlgorithmWithNoMoreSlotsThanItAsksFor) {
  each_schedule(9, [](const Schedule& schedule, Order) {
    for (const auto& [in_place, mapped] : kReadings) {
      const std::vector<Program> programs = lowered(schedule, in_place, mapped);
      const int credits = credits_of(programs);
      for (const bool direct : {false, true})
        for (const auto& [slices, window] : {std::pair{1, 1}, {3, 2}, {4, 1}, {5, 4}})
          for (const int slots : {credits, credits + 3}) {
            const Status proof = verify_programs(programs, {slots, slices, window, direct});
            EXPECT_TRUE(proof.ok()) << proof.text() << (in_place ? ", in place" : "") << (direct ? ", direct, " : ", ")
                                    << slices << " slices, window " << window << ", " << slots << " slots";
          }
    }
  });
}

TEST(VerifyPrograms, AgreesWithARunOnNumbers) {
  each_schedule(7, [](const Schedule& schedule, Order order) {
    for (const auto& [in_place, mapped] : kReadings) {
      const std::vector<Program> programs = lowered(schedule, in_place, mapped);
      for (const bool direct : {false, true})
        for (const int window : {1, 3}) {
          test::ProgramsRun run;
          run.numbers.count = 29;
          run.numbers.order = order;
          run.numbers.in_place = in_place;
          run.numbers.leaf_factor = 3;
          run.numbers.average = true;
          run.window = window;
          run.slots = credits_of(programs);
          run.direct = direct;
          const auto got = test::run_programs(programs, run);
          ASSERT_TRUE(got.ok()) << got.error().text;
          EXPECT_EQ(*got, test::expected_outputs(schedule.shape, run.numbers)) << (in_place ? "in place" : "apart");
        }
    }
  });
}

TEST(VerifyPrograms, LowerTheSameFromTheWholeScheduleAndFromOneRanksReading) {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int ranks : {2, 5, 8}) {
      const auto whole = algorithm.build({algorithm.collective, ranks, 0, Order::fast, {}});
      for (Rank rank = 0; rank < ranks; ++rank) {
        const auto one = algorithm.build({algorithm.collective, ranks, 0, Order::fast, rank});
        Program from_whole = *lower(*whole, rank, {false, std::vector<bool>(static_cast<std::size_t>(ranks), true)});
        Program from_one = *lower(*one, rank, {false, std::vector<bool>(static_cast<std::size_t>(ranks), true)});
        // Only the numbers of steps, which are for people, differ.
        for (Program* program : {&from_whole, &from_one})
          for (ProgramStep& step : program->steps) step.schedule_step = 0;
        EXPECT_TRUE(from_whole == from_one) << algorithm.name << " rank " << rank << " of " << ranks;
      }
    }
}

// Each fault in one program of a small ring, and the sentence that names it.
class VerifyProgramsBroken : public testing::Test {
 protected:
  VerifyProgramsBroken() {
    const auto ring =
        find_algorithm(Collective::all_reduce, "ring")->build({Collective::all_reduce, 3, 0, Order::fast, {}});
    programs_ = lowered(*ring, false, true);
  }
  // Removes the n-th action of a kind of rank 1.
  void drop(Act act, int n) {
    Program& program = programs_[1];
    for (ProgramStep& step : program.steps)
      for (std::uint32_t i = 0; i < step.actions; ++i)
        if (program.actions[step.first_action + i].act == act && n-- == 0) {
          const std::uint32_t at = step.first_action + i;
          program.actions.erase(program.actions.begin() + at);
          --step.actions;
          for (ProgramStep& other : program.steps) other.first_action -= other.first_action > at ? 1 : 0;
          return;
        }
  }
  std::string fault(ProgramCheck check = {}) const {
    const Status proof = verify_programs(programs_, check);
    return proof.ok() ? "proved" : proof.text();
  }
  std::vector<Program> programs_;
};

TEST_F(VerifyProgramsBroken, ByADroppedWaitForAMessage) {
  drop(Act::wait_ready, 0);
  EXPECT_EQ(fault(),
            "rank 1, step 0 of level 0, slice 0, action 0 (combine): reads message 0 from rank 0 without having waited "
            "for it");
}

TEST_F(VerifyProgramsBroken, ByADroppedWaitForRoom) {
  drop(Act::wait_room, 0);
  EXPECT_EQ(fault(),
            "rank 1, step 1 of level 0, slice 0, action 0 (combine): writes a message to rank 2 without having waited "
            "for room");
}

TEST_F(VerifyProgramsBroken, ByAMissingSignal) {
  drop(Act::commit, 3);
  EXPECT_NE(fault().find("writes a message to rank 2 twice"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsBroken, ByAMissingRelease) {
  drop(Act::release, 1);
  EXPECT_NE(fault(), "proved");
}

TEST_F(VerifyProgramsBroken, ByAnEarlyRelease) {
  Program& program = programs_[1];
  const ProgramStep& step =
      *std::find_if(program.steps.begin(), program.steps.end(), [](const ProgramStep& s) { return s.phase == 1; });
  std::swap(program.actions[step.first_action + 1], program.actions[step.first_action + 2]);  // combine, release
  EXPECT_EQ(
      fault(),
      "rank 1, step 0 of level 0, slice 0, action 1 (release): releases message 0 from rank 0 without having read it");
}

TEST_F(VerifyProgramsBroken, ByFewerSlotsThanItAsksFor) {
  programs_[2].credits = 9;
  EXPECT_EQ(fault(), "rank 2: needs flows of 9 slots, not 8");
}

TEST_F(VerifyProgramsBroken, ByAMissingClosingWait) {
  programs_[1].closing.clear();
  EXPECT_EQ(fault(), "rank 1: ends while rank 2 may still read what a message describes");
  EXPECT_EQ(fault({8, 3, 2, /*direct=*/false}), "proved");  // nothing is described then
}

TEST_F(VerifyProgramsBroken, ByDescribingWhatIsOverwrittenLater) {
  for (CombineAction& action : programs_[1].combines)
    for (Operand& to : action.to) to.direct = to.message;
  EXPECT_NE(fault().find("still names"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsBroken, ByAMarkThatIsNotSo) {
  for (CombineAction& action : programs_[1].combines)
    if (action.final) action.final = false;
  EXPECT_NE(fault().find("the sum of in.2 of ranks 0-2 is not marked as final"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsBroken, ByTheWrongChunk) {
  for (CombineAction& action : programs_[1].combines)
    if (action.to[0].message && !action.from[0].message) {
      action.from[0].chunk = (action.from[0].chunk + 1) % 3;
      break;
    }
  EXPECT_NE(fault().find("different chunks are summed"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsBroken, ByAWaitForAMessageThatNobodySends) {
  Program& program = programs_[0];
  program.steps.erase(program.steps.begin());
  for (std::size_t level = 1; level < program.level_begin.size(); ++level) --program.level_begin[level];
  EXPECT_NE(fault(), "proved");
  // All of rank 0's sends gone: a plain deadlock.
  std::erase_if(program.steps, [](const ProgramStep& step) { return step.phase == 0; });
  std::fill(program.level_begin.begin(), program.level_begin.end(), 0u);
  for (const ProgramStep& step : program.steps)
    for (std::size_t level = static_cast<std::size_t>(step.level) + 1; level < program.level_begin.size(); ++level)
      ++program.level_begin[level];
  EXPECT_EQ(
      fault({8, 1, 1, true}),
      "rank 0, step 8 of level 2, slice 0, action 0 (wait_ready): deadlock: waits for ever for a message from rank 2");
}

TEST_F(VerifyProgramsBroken, ByNumbersThatPointNowhere) {
  const auto spoiled = [&](auto spoil) {
    const std::vector<Program> good = programs_;
    spoil(programs_[1]);
    const std::string text = fault();
    programs_ = good;
    return text;
  };
  EXPECT_EQ(spoiled([](Program& p) { p.actions[0].flow = 7; }), "rank 1: wait_ready of flow 7 of 1");
  EXPECT_EQ(spoiled([](Program& p) { p.steps[0].actions = 1000; }), "rank 1: step 1 has actions that do not exist");
  EXPECT_EQ(spoiled([](Program& p) { p.out_peers[0] = 1; }), "rank 1: a flow with rank 1");
  EXPECT_EQ(spoiled([](Program& p) { p.level_begin.pop_back(); }), "rank 1: levels do not cover the steps");
  EXPECT_EQ(spoiled([](Program& p) { p.steps[0].extent.chunk = 99; }), "rank 1: step 1 has no extent");
  EXPECT_EQ(spoiled([](Program& p) { p.rank = 2; }), "rank 1: the program is another rank's, or of another schedule");
  EXPECT_EQ(spoiled([](Program& p) { p.combines[0].from[1].chunk = -1; }), "rank 1: no place in.-1");
}

// The same for places that are lent: a two-shot all-reduce, in place, so that each place is described and lent to one step.
class VerifyProgramsLent : public VerifyProgramsBroken {
 protected:
  VerifyProgramsLent() {
    const auto two_shot =
        find_algorithm(Collective::all_reduce, "two_shot")->build({Collective::all_reduce, 3, 0, Order::fast, {}});
    programs_ = lowered(*two_shot, true, true);
  }
  Operand& first(bool (*is)(const Operand&)) {
    for (CombineAction& action : programs_[1].combines)
      for (auto* operands : {&action.from, &action.to})
        for (Operand& operand : *operands)
          if (is(operand)) return operand;
    ADD_FAILURE() << "there is no such operand";
    return programs_[1].combines[0].from[0];
  }
  Operand& lent_target() {
    return first([](const Operand& one) { return one.lent && one.depth > 0; });
  }
  Operand& lent_source() {
    return first([](const Operand& one) { return one.lent && one.depth == 0; });
  }
};

TEST_F(VerifyProgramsLent, NotAtAll) {
  EXPECT_EQ(fault(), "proved");
  EXPECT_TRUE(programs_[1].closing.empty());  // the results tell that what was described is read
}

TEST_F(VerifyProgramsLent, ByLendingWhatItWritesItself) {
  programs_[1].offers[0].chunk = 1;
  EXPECT_NE(fault().find("touches r1.in.1, which is lent to rank 0"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsLent, ByAnotherPlaceThanTheOneItTakesHome) {
  for (CombineAction& action : programs_[1].combines)
    if (action.from[0].lent && action.to[0].chunk == 0) action.to[0].chunk = action.from[0].chunk = 1;
  EXPECT_NE(fault().find("takes home r1.out.1, but r1.out.0 was written"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsLent, ByLookingForAResultElsewhere) {
  lent_source().chunk = 1;
  EXPECT_NE(fault().find("takes home r1.out.0, but looks for it at r1.out.1"), std::string::npos) << fault();
  lent_source().chunk = 9;
  EXPECT_EQ(fault(), "rank 1: no place out.9");
}

TEST_F(VerifyProgramsLent, ByAReceiverThatDoesNotKnowThatItLent) {
  lent_source().lent = false;
  EXPECT_NE(fault().find("reads a result that was written where another step lent"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsLent, ByAnExecutorThatDoesNotKnowThatItWasLent) {
  lent_target().lent = false;
  EXPECT_NE(fault().find("releases message 1 from rank 2 without having read it"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsLent, ByWritingToAPlaceOfAnotherRank) {
  Operand& target = lent_target();
  target.offer = static_cast<std::uint16_t>(1 - target.offer);
  EXPECT_NE(fault().find("did not lend"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsLent, ByTouchingALentPlace) {
  // Rank 1 reads its part of chunk 0 for itself after it lent it.
  for (CombineAction& action : programs_[1].combines)
    if (action.from.size() > 1)
      for (Operand& from : action.from)
        if (!from.message) from.chunk = 0;
  EXPECT_NE(fault().find("touches r1.in.0, which is lent to rank 0"), std::string::npos) << fault();
}

TEST_F(VerifyProgramsLent, ByADescribedPlaceThatAnotherRankReads) {
  // The same place is described to rank 0 before it is lent to rank 2.
  for (CombineAction& action : programs_[1].combines)
    if (action.to[0].message && action.to[0].direct && !action.from[0].message && action.from[0].chunk == 0)
      action.from[0].chunk = 2;
  EXPECT_NE(fault().find("lends r1.out.2, which a described message to rank 0 still names"), std::string::npos)
      << fault();
}

TEST_F(VerifyProgramsLent, ByOffersThatPointNowhere) {
  programs_[1].offers[0].chunk = 9;
  EXPECT_EQ(fault(), "rank 1: no place out.9");
  programs_[1].offers[0] = {};
  EXPECT_NE(fault(), "proved");
  programs_[1].offers.clear();
  EXPECT_EQ(fault(), "rank 1: offer 0 does not exist");
}

TEST(VerifyProgramsArguments, AreChecked) {
  EXPECT_FALSE(verify_programs({}, {}).ok());
  const auto ring =
      find_algorithm(Collective::all_reduce, "ring")->build({Collective::all_reduce, 3, 0, Order::fast, {}});
  std::vector<Program> programs = lowered(*ring, false, true);
  EXPECT_FALSE(verify_programs(programs, {0, 1, 1, true}).ok());
  programs.pop_back();
  EXPECT_FALSE(verify_programs(programs, {}).ok());
}

}  // namespace
}  // namespace sluice
