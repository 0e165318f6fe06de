// What the builder derives, against hand-worked schedules and a slow second derivation; and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/rng.h"
#include "comm/algorithms/algorithms.h"
#include "comm/schedule/places.h"
#include "comm/schedule/schedule.h"

namespace sluice {
namespace {

Place in(Rank rank, int chunk = 0) { return {rank, Buffer::input, chunk}; }
Place out(Rank rank, int chunk = 0) { return {rank, Buffer::output, chunk}; }
Place scratch(Rank rank, int chunk = 0) { return {rank, Buffer::scratch, chunk}; }

ScheduleShape all_reduce_of(int ranks, int chunks = 1, int scratch_chunks = 0) {
  return {Collective::all_reduce, ranks, chunks, 0, scratch_chunks};
}

std::vector<int> levels(const Schedule& schedule) {
  std::vector<int> all;
  for (const Step& step : schedule.steps) all.push_back(step.level);
  return all;
}

std::string refusal(ScheduleBuilder builder) {
  const auto built = std::move(builder).build();
  return built.ok() ? "built" : built.error().text;
}

TEST(BuilderLevels, RiseOverWhatAStepReadsAndOverwrites) {
  ScheduleBuilder builder("levels", all_reduce_of(4, 1, 2));
  builder.copy(in(0), scratch(0));            // 0
  builder.copy(in(1), scratch(1));            // 0: nothing in common
  builder.copy(scratch(0), scratch(1, 1));    // 1: reads what step 0 wrote
  builder.copy(in(2), scratch(0));            // 2: overwrites what step 2 read
  builder.reduce(scratch(1), in(3), out(3));  // 1
  builder.copy(in(0), out(3));                // 2: overwrites what step 4 wrote
  EXPECT_EQ(levels(*std::move(builder).build()), (std::vector<int>{0, 0, 1, 2, 1, 2}));
}

TEST(BuilderLevels, AlsoHoldInPlace) {
  ScheduleBuilder builder("in_place", all_reduce_of(3));
  builder.copy(in(0), out(1));  // 0
  builder.copy(in(1),
               out(2));  // 1: in place, out.0 of rank 1 was its input, which is gone: still the order of the steps
  builder.copy(in(2), out(0));  // 2
  EXPECT_EQ(levels(*std::move(builder).build()), (std::vector<int>{0, 1, 2}));
}

TEST(BuilderLevels, DoNotRiseOverACopyThatIsNothingInPlace) {
  const ScheduleShape shape{Collective::all_gather, 2, 1, 0, 0};
  ScheduleBuilder builder("own_block", shape);
  builder.copy(in(0), out(0, 0));
  builder.copy(in(0), out(1, 0));
  builder.copy(out(0, 0), out(1, 0));  // but reading the copy waits for it
  EXPECT_EQ(levels(*std::move(builder).build()), (std::vector<int>{0, 0, 1}));
}

TEST(BuilderLevels, AreSharedInAMoment) {
  ScheduleBuilder builder("swap", all_reduce_of(2, 1, 1));
  builder.copy(in(0), scratch(0));
  builder.copy(in(1), scratch(1));
  builder.together([&] {
    builder.copy(scratch(0), scratch(1));
    builder.copy(scratch(1), scratch(0));
  });
  const auto swap = std::move(builder).build();
  ASSERT_TRUE(swap.ok()) << swap.error().text;
  EXPECT_EQ(levels(*swap), (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(swap->steps[2].moment, swap->steps[3].moment);
}

TEST(BuilderLevels, HoldFewMessagesOfOnePairOfRanks) {
  ScheduleBuilder builder("many", all_reduce_of(2, 9));
  for (int chunk = 0; chunk < 9; ++chunk) builder.copy(in(0, chunk), out(1, chunk));
  EXPECT_EQ(levels(*std::move(builder).build()), (std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2}));
}

// Slow and plain: levels by looking at all earlier moments, once in each reading of the places.
int level_by_definition(const Schedule& schedule, std::size_t begin, std::size_t end) {
  const ScheduleShape& shape = schedule.shape;
  int least = 0;
  for (const bool in_place : {false, true}) {
    const auto named = [&](Place place) { return in_place ? in_place_name(shape, place) : place; };
    const auto overlap = [&](const std::vector<Place>& a, const std::vector<Place>& b) {
      return std::any_of(a.begin(), a.end(), [&](Place x) {
        return std::any_of(b.begin(), b.end(), [&](Place y) { return named(x) == named(y); });
      });
    };
    const auto nothing = [&](const Step& step) {
      return in_place && shape.ranks > 1 && step.from.size() == 1 && step.to.size() == 1 &&
             named(step.from[0]) == named(step.to[0]);
    };
    for (std::size_t i = begin; i < end; ++i)
      for (std::size_t j = 0; j < begin; ++j) {
        const Step& later = schedule.steps[i];
        const Step& earlier = schedule.steps[j];
        if (nothing(later) || nothing(earlier)) continue;
        if (overlap(later.from, earlier.to) || overlap(later.to, earlier.from) || overlap(later.to, earlier.to))
          least = std::max(least, earlier.level + 1);
      }
  }
  return least;
}

TEST(BuilderLevels, AreTheLeastOnesForAlgorithmsWithFewMessagesPerPair) {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int ranks : {2, 3, 4, 5, 6}) {
      const auto schedule = algorithm.build({algorithm.collective, ranks, 0, Order::fast, {}});
      ASSERT_TRUE(schedule.ok());
      for (std::size_t begin = 0, end = 0; begin < schedule->steps.size(); begin = end) {
        while (end < schedule->steps.size() && schedule->steps[end].moment == schedule->steps[begin].moment) ++end;
        const int least = level_by_definition(*schedule, begin, end);
        EXPECT_GE(schedule->steps[begin].level, least) << algorithm.name << " step " << begin;
        if (ranks <= 5) {
          EXPECT_LE(schedule->steps[begin].level, least + 1) << algorithm.name << " step " << begin;
        }
      }
    }
}

TEST(BuilderLevels, NeverFallAlongThePairsOfAnySchedule) {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int ranks : {2, 5, 8, 17}) {
      const auto schedule = algorithm.build({algorithm.collective, ranks, 0, Order::fast, {}});
      std::map<std::pair<Rank, Rank>, int> last;
      std::map<std::tuple<Rank, Rank, int>, int> messages;
      for (const Step& step : schedule->steps) {
        const auto message = [&](Rank from, Rank to) {
          int& level = last[{from, to}];
          EXPECT_GE(step.level, level) << algorithm.name;
          level = step.level;
          EXPECT_LE(++messages[(std::tuple{from, to, step.level})], kMessagesPerLevel);
        };
        for (const Place& from : step.from)
          if (from.rank != step.executor) message(from.rank, step.executor);
        for (const Place& to : step.to)
          if (to.rank != step.executor) message(step.executor, to.rank);
      }
    }
}

TEST(BuilderWeights, MarkLeavesAndTheFinalSum) {
  ScheduleBuilder builder("weights", all_reduce_of(3, 1, 1));
  builder.copy(in(0), scratch(1));                // still one input
  builder.reduce(scratch(1), in(1), scratch(1));  // both leaves
  builder.reduce(scratch(1), in(2), out(2));      // 2 + 1 = all
  builder.copy(out(2), out(0));                   // a copy is never final
  const auto schedule = std::move(builder).build();
  ASSERT_TRUE(schedule.ok()) << schedule.error().text;
  EXPECT_TRUE(schedule->steps[0].leaf.empty());
  EXPECT_EQ(schedule->steps[1].leaf, (std::vector<bool>{true, true}));
  EXPECT_EQ(schedule->steps[2].leaf, (std::vector<bool>{false, true}));
  EXPECT_FALSE(schedule->steps[1].final);
  EXPECT_TRUE(schedule->steps[2].final);
  EXPECT_FALSE(schedule->steps[3].final);
}

TEST(BuilderWeights, AreThoseBeforeTheMomentInAMoment) {
  ScheduleBuilder builder("moment", all_reduce_of(2));
  builder.together([&] {
    builder.reduce(in(0), in(1), out(0));
    builder.reduce(in(0), in(1), out(1));
  });
  const auto schedule = std::move(builder).build();
  for (const Step& step : schedule->steps) {
    EXPECT_TRUE(step.final);
    EXPECT_EQ(step.leaf, (std::vector<bool>{true, true}));
  }
}

TEST(BuilderErrors, NameTheStepAndWhatIsWrong) {
  const auto refused = [](const ScheduleShape& shape, auto steps) {
    ScheduleBuilder builder("bad", shape);
    builder.copy(in(0), out(0));
    steps(builder);
    return refusal(std::move(builder));
  };
  const ScheduleShape two = all_reduce_of(2);
  EXPECT_EQ(refused(two, [](auto& b) { b.copy(in(2), out(0)); }),
            "schedule bad: step 1 (r2.in.0 -> r0.out.0): r2.in.0: rank is not in 0..1");
  EXPECT_EQ(refused(two, [](auto& b) { b.copy(in(-1), out(0)); }),
            "schedule bad: step 1 (r-1.in.0 -> r0.out.0): r-1.in.0: rank is not in 0..1");
  EXPECT_EQ(refused(two, [](auto& b) { b.copy(in(1), out(0, 1)); }),
            "schedule bad: step 1 (r1.in.0 -> r0.out.1): r0.out.1: chunk is not in 0..0");
  EXPECT_EQ(refused(two, [](auto& b) { b.copy(in(1), scratch(0)); }),
            "schedule bad: step 1 (r1.in.0 -> r0.scratch.0): r0.scratch.0: there is no scratch");
  EXPECT_EQ(refused(two, [](auto& b) { b.copy(out(0), in(1)); }),
            "schedule bad: step 1 (r0.out.0 -> r1.in.0): r1.in.0: an input can't be a target");
  EXPECT_EQ(refused(two, [](auto& b) { b.combine({}, std::vector{out(0)}); }),
            "schedule bad: step 1 ( -> r0.out.0): no source");
  EXPECT_EQ(refused(two, [](auto& b) { b.combine(std::vector{in(0)}, {}); }),
            "schedule bad: step 1 (r0.in.0 ->  by r0): no target");
  EXPECT_EQ(
      refused(all_reduce_of(3), [](auto& b) { b.combine(std::vector{in(0)}, std::vector{out(1)}, Tree::chain, 2); }),
      "schedule bad: step 1 (r0.in.0 -> r1.out.0 by r2): executor r2 owns none of the places");
  EXPECT_EQ(
      refused(all_reduce_of(2, 2),
              [](auto& b) {
                b.combine(std::vector{in(0)}, std::vector{out(1), out(1, 1)}, Tree::chain, 0);
              }),
      "schedule bad: step 1 (r0.in.0 -> r1.out.0, r1.out.1 by r0): two results go to r1: send one and copy it there");
  EXPECT_EQ(refused(two,
                    [](auto& b) {
                      b.combine(std::vector{in(0)}, std::vector{out(0), out(0)});
                    }),
            "schedule bad: step 1 (r0.in.0 -> r0.out.0, r0.out.0): r0.out.0 is written twice in one moment");
  EXPECT_EQ(refused(two,
                    [](auto& b) {
                      b.together([&] {
                        b.copy(in(0), out(0));
                        b.copy(in(1), out(0));
                      });
                    }),
            "schedule bad: step 2 (r1.in.0 -> r0.out.0): r0.out.0 is written twice in one moment");
  EXPECT_EQ(refused(all_reduce_of(2, 2),
                    [](auto& b) {
                      b.together([&] {
                        b.copy(out(0), out(0, 1));
                        b.copy(in(1), out(0));
                      });
                    }),
            "schedule bad: step 1 (r0.out.0 -> r0.out.1): r0.out.0 is read here by its own rank, which also writes it "
            "in another step of "
            "the moment; read it in an earlier moment");
  EXPECT_EQ(refused({Collective::broadcast, 2, 1, 0, 0}, [](auto& b) { b.copy(in(1), out(1)); }),
            "schedule bad: step 1 (r1.in.0 -> r1.out.0): r1.in.0: only the root has an input");
  EXPECT_EQ(refused({Collective::reduce, 2, 1, 0, 0}, [](auto& b) { b.copy(in(1), out(1)); }),
            "schedule bad: step 1 (r1.in.0 -> r1.out.0): r1.out.0: only the root has an output");
  EXPECT_EQ(refused({Collective::all_gather, 2, 1, 0, 0}, [](auto& b) { b.reduce(in(0), in(1), out(1)); }),
            "schedule bad: step 1 (r0.in.0 + r1.in.0 -> r1.out.0): all_gather does not sum, but the step has several "
            "sources");
}

TEST(BuilderErrors, KeepTheFirstMistake) {
  ScheduleBuilder builder("bad", all_reduce_of(2));
  builder.copy(in(5), out(0));
  builder.copy(in(6), out(0));
  EXPECT_NE(refusal(std::move(builder)).find("r5.in.0"), std::string::npos);
}

TEST(BuilderErrors, RefuseShapesThatCanNotBe) {
  const auto refused = [](ScheduleShape shape, std::string name = "bad", std::optional<Rank> only = {}) {
    return refusal(ScheduleBuilder(std::move(name), shape, only));
  };
  EXPECT_EQ(refused(all_reduce_of(0)), "schedule bad: ranks 0 is not in 1..4096");
  EXPECT_EQ(refused(all_reduce_of(kRanksMax + 1)), "schedule bad: ranks 4097 is not in 1..4096");
  EXPECT_EQ(refused(all_reduce_of(2, 0)), "schedule bad: chunks 0 is not in 1..65536");
  EXPECT_EQ(refused(all_reduce_of(2, 1, -1)), "schedule bad: scratch -1 is not in 0..65536");
  EXPECT_EQ(refused({Collective::all_to_all, 4096, 17, 0, 0}),
            "schedule bad: 69632 chunks in a buffer are more than 65536");
  EXPECT_EQ(refused({Collective::all_to_all, 4096, 16, 0, 0}), "schedule bad: 536870912 places are more than 67108864");
  EXPECT_EQ(refused({Collective::broadcast, 4, 1, 4, 0}), "schedule bad: root 4 is not in 0..3");
  EXPECT_EQ(refused({Collective::all_reduce, 4, 1, 1, 0}), "schedule bad: root is given for a form without one");
  EXPECT_EQ(refused(all_reduce_of(2), "two words"),
            "schedule two words: a name holds 1 to 100 letters, digits, '_', '-' or '.'");
  EXPECT_EQ(refused(all_reduce_of(2), ""), "schedule : a name holds 1 to 100 letters, digits, '_', '-' or '.'");
  EXPECT_EQ(refused(all_reduce_of(2), "bad", 2), "schedule bad: rank 2 is not in 0..1");
}

TEST(Rederive, GivesTheSameScheduleAgain) {
  for (const Algorithm& algorithm : all_algorithms()) {
    const auto schedule = algorithm.build({algorithm.collective, 6, 0, Order::fast, {}});
    ASSERT_TRUE(schedule.ok());
    EXPECT_TRUE(*rederive(*schedule) == *schedule) << algorithm.name;
  }
}

}  // namespace
}  // namespace sluice
