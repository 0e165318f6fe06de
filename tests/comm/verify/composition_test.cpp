// Several operations at once: proved, and broken in each of the ways in which what lanes share could stop them.
#include "comm/verify/composition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/rng.h"
#include "comm/algorithms/algorithms.h"

namespace sluice {
namespace {

ComposedOperation operation_of(const std::string& name, const Algorithm& algorithm, std::vector<Rank> members) {
  const int ranks = static_cast<int>(members.size());
  ComposedOperation made{.name = name, .members = std::move(members), .programs = {}};
  const auto schedule = algorithm.build({algorithm.collective, ranks, 0, Order::fast, {}});
  EXPECT_TRUE(schedule.ok());
  for (Rank rank = 0; rank < ranks; ++rank) made.programs.push_back(*lower(*schedule, rank, {}));
  return made;
}

std::vector<ComposedOperation> two_all_reduces() {
  const auto& algorithms = all_algorithms();
  const auto ring = std::find_if(algorithms.begin(), algorithms.end(), [](const Algorithm& one) {
    return one.collective == Collective::all_reduce && one.name == "ring";
  });
  return {operation_of("A", *ring, {0, 1, 2}), operation_of("B", *ring, {0, 1, 2})};
}

TEST(Composition, PostedCallsMayComeInAnyOrder) {
  const auto operations = two_all_reduces();
  const std::vector<ComposedThread> threads{{0, {{0}, {1}}}, {1, {{1}, {0}}}, {2, {{0}, {1}}}};
  const Status proof = verify_composition(operations, threads, {});
  EXPECT_TRUE(proof.ok()) << proof.text();
}

TEST(Composition, CallsThatBlockInOppositeOrdersAreTheCircleThatTheyAre) {
  const auto operations = two_all_reduces();
  const std::vector<ComposedThread> threads{
      {0, {{0, true}, {1, true}}}, {1, {{1, true}, {0, true}}}, {2, {{0, true}, {1, true}}}};
  const Status proof = verify_composition(operations, threads, {});
  ASSERT_EQ(proof.code(), Code::invalid_argument);
  EXPECT_NE(proof.text().find("rank 0 is in 'A' and waits for rank"), std::string::npos) << proof.text();
  EXPECT_NE(proof.text().find("in 'B' and waits for rank"), std::string::npos) << proof.text();
  EXPECT_NE(proof.text().find("a circle: make such calls in one order"), std::string::npos) << proof.text();
}

TEST(Composition, OneThreadForEachCommunicatorSavesOppositeOrders) {
  const auto operations = two_all_reduces();
  const std::vector<ComposedThread> threads{
      {0, {{0, true}}}, {0, {{1, true}}}, {1, {{1, true}}}, {1, {{0, true}}}, {2, {{0, true}, {1, true}}}};
  const Status proof = verify_composition(operations, threads, {});
  EXPECT_TRUE(proof.ok()) << proof.text();
}

TEST(Composition, ARankThatNeverComesIsNamed) {
  const auto operations = two_all_reduces();
  const std::vector<ComposedThread> threads{{0, {{0}, {1}}}, {1, {{0}}}, {2, {{0}, {1}}}};
  const Status proof = verify_composition(operations, threads, {});
  ASSERT_FALSE(proof.ok());
  EXPECT_NE(proof.text().find("rank 1 never comes to it"), std::string::npos) << proof.text();
}

TEST(Composition, CeilingsOnlyTakeTime) {
  auto operations = two_all_reduces();
  operations[0].pauses = 3;
  operations[1].pauses = 1;
  const std::vector<ComposedThread> threads{{0, {{0}, {1}}}, {1, {{1}, {0}}}, {2, {{0, true}, {1, true}}}};
  const Status proof = verify_composition(operations, threads, {});
  EXPECT_TRUE(proof.ok()) << proof.text();
}

// Free ranks post all in an order of their own, the others block in each call in one order for all: as tests/comm/executor/random_lanes.h.
struct RandomProgram {
  RandomProgram(int ranks, std::uint64_t seed) {
    Rng rng(seed);
    const std::size_t count = 2 + rng.below(7);
    while (operations.size() < count) {
      std::vector<Rank> members;
      for (Rank rank = 0; rank < ranks; ++rank)
        if (rng.chance(0.6)) members.push_back(rank);
      if (members.size() < 2) continue;
      operations.push_back(make(rng, members));
    }
    std::vector<std::size_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    shuffle(order, rng);
    for (Rank rank = 0; rank < ranks; ++rank) {
      const bool is_free = rng.chance(0.5);
      std::vector<std::size_t> mine = order;
      if (is_free) shuffle(mine, rng);
      ComposedThread thread{.rank = rank, .calls = {}};
      for (const std::size_t operation : mine)
        if (std::find(operations[operation].members.begin(), operations[operation].members.end(), rank) !=
            operations[operation].members.end())
          thread.calls.push_back({operation, !is_free});
      threads.push_back(std::move(thread));
    }
  }
  static ComposedOperation make(Rng& rng, const std::vector<Rank>& members) {
    const Algorithm* algorithm = nullptr;
    while (algorithm == nullptr || !algorithm->supports(static_cast<int>(members.size())))
      algorithm = &all_algorithms()[rng.below(all_algorithms().size())];
    ComposedOperation made = operation_of(std::string(algorithm->name), *algorithm, members);
    made.priority = static_cast<std::uint8_t>(rng.below(4));
    made.pauses = rng.chance(0.2) ? 2 : 0;
    return made;
  }
  static void shuffle(std::vector<std::size_t>& order, Rng& rng) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  }
  std::vector<ComposedOperation> operations;
  std::vector<ComposedThread> threads;
};

constexpr std::uint64_t kSeeds = 100;

TEST(Composition, ProvesRandomProgramsOfManyCommunicators) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomProgram program(6, seed);
    const Status proof = verify_composition(program.operations, program.threads, {});
    ASSERT_TRUE(proof.ok()) << "seed " << seed << ": " << proof.text();
  }
}

// How many of the seeds are refused.
int refused_with(const ComposedLimits& limits) {
  int refused = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const RandomProgram program(6, seed);
    const Status proof = verify_composition(program.operations, program.threads, limits);
    if (!proof.ok()) {
      ++refused;
      EXPECT_NE(proof.text().find("calls that never end"), std::string::npos) << proof.text();
    }
  }
  return refused;
}

TEST(CompositionBroken, FlowsWithoutSlotsOfTheirOwnStopEachOther) {
  EXPECT_GT(refused_with({.reserved = 0, .surplus = 8, .slices = 6, .window = 4}), 0);
}

TEST(CompositionBroken, AnEngineThatServesOneOperationToItsEndStopsOthers) {
  EXPECT_GT(refused_with({.engine_sticks = true}), 0);
}

TEST(CompositionBroken, AProgramThatIsWrongIsStillSeen) {
  auto operations = two_all_reduces();
  Program& broken = operations[1].programs[2];
  for (CombineAction& combine : broken.combines)
    if (combine.from.size() == 2) {
      combine.from.pop_back();
      break;
    }
  const std::vector<ComposedThread> threads{{0, {{0}, {1}}}, {1, {{1}, {0}}}, {2, {{0}, {1}}}};
  EXPECT_FALSE(verify_composition(operations, threads, {}).ok());
}

TEST(CompositionBroken, SurplusAloneIsNoHarmWhereEachFlowKeepsItsOwn) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const RandomProgram program(6, seed);
    EXPECT_TRUE(verify_composition(program.operations, program.threads, {.reserved = 4, .surplus = 3}).ok()) << seed;
  }
}

}  // namespace
}  // namespace sluice
