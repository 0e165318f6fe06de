// The verifier against hand-made right and wrong schedules: each fault is named, with step and rank.
#include "comm/verify/verify.h"

#include <gtest/gtest.h>

#include "comm/algorithms/algorithms.h"
#include "comm/verify/symbols.h"

namespace sluice {
namespace {

// `steps`: lines of the text form.
Schedule schedule_of(const std::string& shape, const std::string& steps) {
  auto schedule = parse_schedule("sluice schedule 1\nname t\nshape " + shape + "\n" + steps);
  EXPECT_TRUE(schedule.ok()) << schedule.error().text;
  return schedule.ok() ? *std::move(schedule) : Schedule{};
}
std::string fault(const std::string& shape, const std::string& steps) {
  const auto proof = verify(schedule_of(shape, steps));
  return proof.ok() ? "proved" : proof.error().text;
}
Proof proof(const std::string& shape, const std::string& steps) {
  const auto proved = verify(schedule_of(shape, steps));
  EXPECT_TRUE(proved.ok()) << proved.error().text;
  return proved.ok() ? *proved : Proof{};
}

const std::string kTwo = "all_reduce ranks 2 chunks 1 root 0 scratch 1";
const std::string kThree = "all_reduce ranks 3 chunks 1 root 0 scratch 1";

TEST(Verify, NamesAPlaceThatWasNeverWritten) {
  EXPECT_EQ(fault(kTwo, "r0.scratch.0 + r1.in.0 -> r1.out.0\n"),
            "schedule t: step 0 (r0.scratch.0 + r1.in.0 -> r1.out.0): r0.scratch.0 was never written");
}

TEST(Verify, NamesAnInputThatIsCountedTwice) {
  EXPECT_EQ(fault(kThree, "r0.in.0 + r1.in.0 -> r1.out.0\nr1.out.0 + r0.in.0 -> r0.out.0\n"),
            "schedule t: step 1 (r1.out.0 + r0.in.0 -> r0.out.0): the input of rank 0 is counted twice, the second "
            "time in r0.in.0");
}

TEST(Verify, NamesAPlaceThatEndsWithTheWrongValue) {
  EXPECT_EQ(fault(kThree, "r0.in.0 + r1.in.0 -> r1.out.0\nr1.out.0 -> r0.out.0\nr0.out.0 -> r2.out.0\n"),
            "schedule t: r0.out.0 ends with the sum of in.0 of ranks 0-1, not with the sum of in.0 of all ranks");
  EXPECT_EQ(fault(kTwo, "r0.in.0 + r1.in.0 -> r1.out.0\n"),
            "schedule t: r0.out.0 ends with nothing, not with the sum of in.0 of all ranks");
  EXPECT_EQ(fault("all_gather ranks 2 chunks 1 root 0 scratch 0",
                  "r0.in.0 -> r0.out.0\nr1.in.0 -> r0.out.1\nr0.in.0 -> r1.out.0\nr0.in.0 -> r1.out.1\n"),
            "schedule t: r1.out.1 ends with r0.in.0, not with r1.in.0");
}

TEST(Verify, NamesDifferentChunksThatAreSummed) {
  EXPECT_EQ(fault("all_reduce ranks 2 chunks 2 root 0 scratch 0", "r0.in.0 + r1.in.1 -> r1.out.0\n"),
            "schedule t: step 0 (r0.in.0 + r1.in.1 -> r1.out.0): different chunks are summed: r0.in.0 and r1.in.1");
}

TEST(Verify, RefusesRanksThatSumInDifferentOrders) {
  EXPECT_EQ(fault(kTwo, "{\nr0.in.0 + r1.in.0 -> r0.out.0\nr1.in.0 + r0.in.0 -> r1.out.0\n}\n"),
            "schedule t: r0 and r1 sum chunk 0 in different orders: their results could differ in the last bits");
}

TEST(Verify, RunsAMomentAtOnce) {
  const std::string swap =
      "r0.in.0 -> r0.scratch.0\nr1.in.0 -> r1.scratch.0\n{\nr0.scratch.0 + r1.scratch.0 -> r0.scratch.0\n"
      "r0.scratch.0 + r1.scratch.0 -> r1.scratch.0\n}\nr0.scratch.0 -> r0.out.0\nr1.scratch.0 -> r1.out.0\n";
  EXPECT_EQ(fault(kTwo, swap), "proved");
  std::string in_turn = swap;
  std::erase(in_turn, '{');
  std::erase(in_turn, '}');
  EXPECT_EQ(fault(kTwo, in_turn),
            "schedule t: step 3 (r0.scratch.0 + r1.scratch.0 -> r1.scratch.0): the input of rank 1 is counted twice, "
            "the second time in r1.in.0");
}

TEST(VerifyOrder, IsCanonicalOnlyForTheTreeOverRanks) {
  const auto order = [](const std::string& steps) {
    return proof("reduce ranks 5 chunks 1 root 0 scratch 2", steps).order;
  };
  EXPECT_EQ(order("r0.in.0 + r1.in.0 + r2.in.0 + r3.in.0 + r4.in.0 -> r0.out.0 tree canonical\n"),
            OrderClass::canonical);
  EXPECT_EQ(order("r0.in.0 + r1.in.0 + r2.in.0 + r3.in.0 + r4.in.0 -> r0.out.0\n"), OrderClass::fixed);  // a chain
  EXPECT_EQ(order("r1.in.0 + r0.in.0 + r2.in.0 + r3.in.0 + r4.in.0 -> r0.out.0 tree canonical\n"), OrderClass::fixed);
  // ((0+1)+(2+3))+4 by hand, the first two over scratch.
  const std::string pairs = "r0.in.0 + r1.in.0 -> r0.scratch.0\nr2.in.0 + r3.in.0 -> r2.scratch.0\n";
  EXPECT_EQ(order(pairs + "r0.scratch.0 + r2.scratch.0 + r4.in.0 -> r0.out.0\n"), OrderClass::canonical);
  EXPECT_EQ(order(pairs + "r2.scratch.0 + r4.in.0 -> r2.scratch.1\nr0.scratch.0 + r2.scratch.1 -> r0.out.0\n"),
            OrderClass::fixed);
  // A chain over aligned halves is the tree; a tree over unaligned parts is not.
  EXPECT_EQ(
      order(
          "r0.in.0 + r1.in.0 + r2.in.0 -> r0.scratch.0\nr0.scratch.0 + r3.in.0 + r4.in.0 -> r0.out.0 tree canonical\n"),
      OrderClass::fixed);
}

TEST(VerifyOrder, IsLostWhereAnInnerSumIsRounded) {
  const std::string shape = "all_reduce ranks 3 chunks 1 root 0 scratch 1";
  const std::string end = "r0.out.0 -> r1.out.0\nr0.out.0 -> r2.out.0\n";
  EXPECT_EQ(proof(shape, "r0.in.0 + r1.in.0 -> r0.scratch.0\nr0.scratch.0 + r2.in.0 -> r0.out.0\n" + end).order,
            OrderClass::canonical);
  EXPECT_EQ(proof(shape, "r0.in.0 + r1.in.0 -> r0.out.0\nr0.out.0 + r2.in.0 -> r0.out.0\n" + end).order,
            OrderClass::fixed);
  // Copies of an input round nothing.
  EXPECT_EQ(proof(shape,
                  "r0.in.0 -> r0.out.0\nr0.out.0 + r1.in.0 -> r0.scratch.0\nr0.scratch.0 + r2.in.0 -> r0.out.0\n" + end)
                .order,
            OrderClass::canonical);
}

TEST(VerifyOrder, IsThatOfTheWeakestChunk) {
  EXPECT_EQ(proof("reduce ranks 3 chunks 2 root 0 scratch 0",
                  "r0.in.0 + r1.in.0 + r2.in.0 -> r0.out.0\nr0.in.1 + r2.in.1 + r1.in.1 -> r0.out.1\n")
                .order,
            OrderClass::fixed);
}

TEST(VerifyInPlace, SeesAnInputOverwrittenBeforeItsLastUse) {
  const std::string shape = "all_to_all ranks 2 chunks 1 root 0 scratch 0";
  const std::string own = "r0.in.0 -> r0.out.0\nr1.in.1 -> r1.out.1\n";
  EXPECT_TRUE(proof(shape, own + "{\nr0.in.1 -> r1.out.0\nr1.in.0 -> r0.out.1\n}\n").in_place);
  EXPECT_FALSE(proof(shape, own + "r0.in.1 -> r1.out.0\nr1.in.0 -> r0.out.1\n").in_place);
}

TEST(VerifyInPlace, SeesARankOverwriteWhatItReadsAtHomeInTheSameMoment) {
  // Apart, r0.in.1 and r0.out.1 are two places; in place rank 0 may write the second before it sends the first itself.
  const std::string shape = "all_to_all ranks 2 chunks 1 root 0 scratch 0";
  EXPECT_FALSE(
      proof(shape, "r0.in.0 -> r0.out.0\nr1.in.1 -> r1.out.1\n{\nr0.in.1 -> r1.out.0 by r0\nr1.in.0 -> r0.out.1\n}\n")
          .in_place);
}

TEST(VerifyDerived, RefusesLevelsAndMarksThatDoNotFollowFromTheSteps) {
  const Schedule good = schedule_of(kTwo, "r0.in.0 + r1.in.0 -> r1.out.0\nr1.out.0 -> r0.out.0\n");
  const auto refusal = [&](auto spoil) {
    Schedule bad = good;
    spoil(bad);
    const auto proved = verify(bad);
    return proved.ok() ? "proved" : proved.error().text;
  };
  EXPECT_EQ(refusal([](Schedule&) {}), "proved");
  EXPECT_EQ(refusal([](Schedule& s) { s.steps[1].level = 0; }),
            "schedule t: step 1 (r1.out.0 -> r0.out.0): level 0 is not what follows from its places: 1");
  EXPECT_EQ(refusal([](Schedule& s) { s.steps[0].final = false; }),
            "schedule t: step 0 (r0.in.0 + r1.in.0 -> r1.out.0): the marks for leaves and the final sum are not what "
            "follows from the steps");
  EXPECT_EQ(refusal([](Schedule& s) { s.steps[0].leaf[1] = false; }),
            "schedule t: step 0 (r0.in.0 + r1.in.0 -> r1.out.0): the marks for leaves and the final sum are not what "
            "follows from the steps");
  EXPECT_EQ(refusal([](Schedule& s) { s.levels = 5; }), "schedule t: 5 levels are not the 2 of the steps");
  EXPECT_EQ(refusal([](Schedule& s) { s.steps[0].to[0].chunk = 9; }),
            "schedule t: step 0 (r0.in.0 + r1.in.0 -> r1.out.9): r1.out.9: chunk is not in 0..0");
  EXPECT_EQ(refusal([](Schedule& s) { s.only = 1; }),
            "schedule t holds only the steps of rank 1; a proof needs the whole");
}

TEST(Symbols, AreEqualForEqualValuesOnly) {
  const ScheduleShape shape{Collective::all_reduce, 70, 2, 0, 0};
  Symbols symbols(shape);
  const Symbol a = symbols.leaf(0, 0);
  const Symbol b = symbols.leaf(69, 0);
  EXPECT_EQ(symbols.leaf(0, 0), a);
  EXPECT_NE(symbols.leaf(0, 1), a);
  const Symbol ab = *symbols.combine(std::vector{a, b}, Tree::chain);
  EXPECT_EQ(*symbols.combine(std::vector{a, b}, Tree::canonical), ab);  // of two there is one tree
  EXPECT_NE(*symbols.combine(std::vector{b, a}, Tree::chain), ab);
  EXPECT_NE(symbols.stored(ab, Buffer::output), ab);
  EXPECT_EQ(symbols.stored(ab, Buffer::scratch), ab);
  EXPECT_EQ(symbols.stored(a, Buffer::output), a);
  EXPECT_EQ(symbols.describe(ab), "the sum of in.0 of ranks 0,69");
}

TEST(Symbols, StayDistinctByTheThousand) {
  const int ranks = 300;
  Symbols symbols({Collective::all_reduce, ranks, 1, 0, 0});
  Symbol sum = symbols.leaf(0, 0);
  for (Rank rank = 1; rank < ranks; ++rank) {
    const Symbol next = *symbols.combine(std::vector{sum, symbols.leaf(rank, 0)}, Tree::chain);
    EXPECT_NE(next, sum);
    EXPECT_EQ(symbols.is_whole_sum(next, 0), rank == ranks - 1);
    sum = next;
  }
}

}  // namespace
}  // namespace sluice
