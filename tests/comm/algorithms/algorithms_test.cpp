// What every algorithm of the list must be: proved on symbols, right on numbers in every allowed order of its steps, of the
// order class that the list declares, and as costly as the list says.
#include "comm/algorithms/algorithms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "comm/verify/verify.h"
#include "tests/support/run_schedule.h"

namespace sluice {
namespace {

std::vector<Rank> roots_of(Collective collective, int ranks) {
  if (!is_rooted(collective)) return {0};
  std::set<Rank> roots{0, ranks / 2, ranks - 1};
  return {roots.begin(), roots.end()};
}

// Calls use(algorithm, request, schedule) for every algorithm, order and a few roots.
template <typename Use>
void each_schedule(const std::vector<int>& rank_counts, Use use) {
  for (const Algorithm& algorithm : all_algorithms())
    for (const int ranks : rank_counts)
      for (const Order order : {Order::fast, Order::canonical}) {
        if (!algorithm.supports(ranks) || (order == Order::canonical && !algorithm.supports_canonical(ranks))) continue;
        for (const Rank root : roots_of(algorithm.collective, ranks)) {
          const AlgorithmRequest request{algorithm.collective, ranks, root, order, {}};
          const auto schedule = algorithm.build(request);
          SCOPED_TRACE(std::string(algorithm.name) + " " + std::string(name(algorithm.collective)) + ", " +
                       std::to_string(ranks) + " ranks, root " + std::to_string(root) + ", " +
                       std::string(name(order)));
          ASSERT_TRUE(schedule.ok()) << schedule.error().text;
          use(algorithm, request, *schedule);
        }
      }
}

std::vector<int> up_to(int last) {
  std::vector<int> counts;
  for (int ranks = 1; ranks <= last; ++ranks) counts.push_back(ranks);
  return counts;
}

TEST(Algorithms, AreProvedForEveryRankCountAndRootAlsoInPlace) {
  std::vector<int> counts = up_to(17);
  counts.insert(counts.end(), {23, 31, 32, 33, 64});
  each_schedule(counts, [](const Algorithm&, const AlgorithmRequest&, const Schedule& schedule) {
    const auto proof = verify(schedule);
    ASSERT_TRUE(proof.ok()) << proof.error().text;
    EXPECT_TRUE(proof->in_place);
  });
}

TEST(Algorithms, KeepTheCanonicalOrderWhenAskedTo) {
  each_schedule(up_to(33), [](const Algorithm&, const AlgorithmRequest& request, const Schedule& schedule) {
    const auto proof = verify(schedule);
    ASSERT_TRUE(proof.ok()) << proof.error().text;
    if (request.order == Order::canonical) {
      EXPECT_EQ(proof->order, OrderClass::canonical);
    }
  });
}

TEST(Algorithms, SumWholeNumbersExactlyInAnyAllowedOrderOfSteps) {
  each_schedule({1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17}, [](const Algorithm&, const AlgorithmRequest& request,
                                                            const Schedule& schedule) {
    test::ScheduleRun run;
    run.order = request.order;
    run.leaf_factor = 3;
    run.average = true;
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{53}})
      for (const bool in_place : {false, true}) {
        run.count = count;
        run.in_place = in_place;
        const auto want = test::expected_outputs(schedule.shape, run);
        for (const auto shuffle :
             {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(7), std::optional<std::uint64_t>(8)}) {
          run.shuffle = shuffle;
          EXPECT_EQ(test::run_schedule(schedule, run), want) << "count " << count << (in_place ? " in place" : "");
        }
      }
  });
}

TEST(Algorithms, GiveTheReferencesBitsInCanonicalOrder) {
  each_schedule({1, 2, 3, 4, 5, 7, 8, 9, 16}, [](const Algorithm&, const AlgorithmRequest& request,
                                                 const Schedule& schedule) {
    if (request.order != Order::canonical) return;
    test::ScheduleRun run;
    run.count = 97;
    run.order = Order::canonical;
    run.numbers = test::Numbers::order_sensitive;
    for (run.seed = 1; run.seed <= 3; ++run.seed)
      EXPECT_EQ(test::run_schedule(schedule, run), test::expected_outputs(schedule.shape, run)) << "seed " << run.seed;
  });
}

TEST(Algorithms, GiveTheSameBitsAtEveryRankInFastOrder) {
  each_schedule({2, 3, 4, 5, 7, 8, 9, 16},
                [](const Algorithm& algorithm, const AlgorithmRequest& request, const Schedule& schedule) {
                  if (algorithm.collective != Collective::all_reduce || request.order != Order::fast) return;
                  test::ScheduleRun run;
                  run.count = 97;
                  run.numbers = test::Numbers::order_sensitive;
                  const auto outputs = test::run_schedule(schedule, run);
                  for (const auto& output : outputs) EXPECT_EQ(output, outputs[0]);
                });
}

bool touches(const Step& step, Rank rank) {
  const auto here = [&](const Place& place) { return place.rank == rank; };
  return step.executor == rank || std::any_of(step.from.begin(), step.from.end(), here) ||
         std::any_of(step.to.begin(), step.to.end(), here);
}

TEST(Algorithms, ReadForOneRankJustTheStepsThatTouchIt) {
  each_schedule({1, 2, 3, 5, 8, 13},
                [](const Algorithm& algorithm, const AlgorithmRequest& request, const Schedule& schedule) {
                  for (Rank rank = 0; rank < request.ranks; ++rank) {
                    Schedule want = schedule;
                    want.only = rank;
                    std::erase_if(want.steps, [&](const Step& step) { return !touches(step, rank); });
                    AlgorithmRequest one = request;
                    one.only = rank;
                    const auto got = algorithm.build(one);
                    ASSERT_TRUE(got.ok());
                    EXPECT_TRUE(*got == want) << "rank " << rank;
                  }
                });
}

TEST(Algorithms, RoundTripThroughText) {
  each_schedule({1, 2, 3, 4, 7, 8}, [](const Algorithm&, const AlgorithmRequest&, const Schedule& schedule) {
    const auto parsed = parse_schedule(print(schedule));
    ASSERT_TRUE(parsed.ok()) << parsed.error().text;
    EXPECT_TRUE(*parsed == schedule);
  });
}

// Counted from the steps: what a closed formula should have said.
AlgorithmCost counted(const Schedule& schedule, double bytes) {
  const ScheduleShape& shape = schedule.shape;
  const double chunk_bytes = bytes / std::max(shape.input_chunks(), shape.output_chunks());
  std::map<Rank, double> sent;
  std::map<Rank, double> combined;
  for (const Step& step : schedule.steps) {
    for (const Place& from : step.from)
      if (from.rank != step.executor) sent[from.rank] += chunk_bytes;
    for (const Place& to : step.to)
      if (to.rank != step.executor) sent[step.executor] += chunk_bytes;
    if (step.from.size() > 1) combined[step.executor] += chunk_bytes * static_cast<double>(step.from.size());
  }
  // Its one level goes there and back.
  const int trips = schedule.name == "two_shot_all_reduce" && shape.ranks > 1 ? 2 : 1;
  AlgorithmCost cost{static_cast<double>(schedule.levels * trips), 0, 0};
  for (const auto& [rank, value] : sent) cost.sent_bytes = std::max(cost.sent_bytes, value);
  for (const auto& [rank, value] : combined) cost.combined_bytes = std::max(cost.combined_bytes, value);
  return cost;
}

TEST(Algorithms, CostWhatTheirFormulasSay) {
  std::vector<int> counts = up_to(40);
  counts.insert(counts.end(), {63, 64, 65, 100});
  each_schedule(counts, [](const Algorithm& algorithm, const AlgorithmRequest& request, const Schedule& schedule) {
    const double bytes = 1024.0 * 5040 * request.ranks;
    const AlgorithmCost want = counted(schedule, bytes);
    const AlgorithmCost got = algorithm.cost(request.ranks, bytes);
    if (request.ranks <= 64) {
      EXPECT_EQ(got.rounds, want.rounds);
    }
    EXPECT_GE(got.rounds, want.rounds);
    EXPECT_LE(got.rounds, 1.03 * want.rounds);
    EXPECT_NEAR(got.sent_bytes, want.sent_bytes, 1e-6 * bytes);
    EXPECT_NEAR(got.combined_bytes, want.combined_bytes, 1e-6 * bytes);
  });
}

// Messages whose two ends do not know the block: it belongs to other ranks.
TEST(Algorithms, RelayNoBlockThatOnlyItsTwoEndsKnowIfTheyOfferUnevenBlocks) {
  each_schedule({1, 2, 5, 8}, [](const Algorithm& algorithm, const AlgorithmRequest&, const Schedule& schedule) {
    const bool pairs = algorithm.collective == Collective::gather || algorithm.collective == Collective::scatter ||
                       algorithm.collective == Collective::all_to_all;
    if (!algorithm.uneven || !pairs) return;
    for (const Step& step : schedule.steps)
      EXPECT_TRUE(step.from[0].buffer == Buffer::input && step.to[0].buffer == Buffer::output) << print(step);
  });
}

TEST(Algorithms, OfUnevenBlocksKeepEachOneInScratchOfItsOwnNumber) {
  each_schedule({2, 3, 5, 8, 12}, [](const Algorithm& algorithm, const AlgorithmRequest&, const Schedule& schedule) {
    if (!algorithm.uneven || algorithm.collective != Collective::reduce_scatter) return;
    const auto block = [](const Place& place) { return place.buffer == Buffer::output ? place.rank : place.chunk; };
    for (const Step& step : schedule.steps)
      for (const Place& from : step.from) EXPECT_EQ(block(from), block(step.to[0])) << print(step);
  });
}

TEST(Algorithms, AreFoundByName) {
  for (const Algorithm& algorithm : all_algorithms())
    EXPECT_EQ(find_algorithm(algorithm.collective, algorithm.name), &algorithm);
  EXPECT_EQ(find_algorithm(Collective::all_reduce, "rings"), nullptr);
  EXPECT_EQ(find_algorithm(Collective::gather, "ring"), nullptr);
}

TEST(Algorithms, OfferCanonicalOrderForEveryReductionAndUnevenBlocksForEveryVForm) {
  const auto offered = [](Collective collective, auto has) {
    const auto all = all_algorithms();
    return std::any_of(all.begin(), all.end(),
                       [&](const Algorithm& one) { return one.collective == collective && has(one); });
  };
  for (const Collective collective : all_collectives())
    for (int ranks = 1; ranks <= 64; ++ranks)
      EXPECT_TRUE(offered(collective,
                          [&](const Algorithm& one) { return one.supports(ranks) && one.supports_canonical(ranks); }));
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather, Collective::gather,
                                      Collective::scatter, Collective::all_to_all})
    EXPECT_TRUE(offered(collective, [](const Algorithm& one) { return one.uneven; }));
}

TEST(Algorithms, RefuseWhatTheyCanNotBuildAndSayWhy) {
  for (const Algorithm& algorithm : all_algorithms()) {
    const AlgorithmRequest good{algorithm.collective, 4, 0, Order::fast, {}};
    const auto refusal = [&](auto spoil) {
      AlgorithmRequest request = good;
      spoil(request);
      const auto built = algorithm.build(request);
      return built.ok() ? Error{Code::ok, "built"} : built.error();
    };
    EXPECT_EQ(refusal([](AlgorithmRequest& r) { r.ranks = 0; }).code, Code::invalid_argument);
    EXPECT_EQ(refusal([](AlgorithmRequest& r) { r.ranks = -3; }).code, Code::invalid_argument);
    EXPECT_EQ(refusal([](AlgorithmRequest& r) { r.ranks = kRanksMax + 1; }).code, Code::invalid_argument);
    EXPECT_EQ(refusal([](AlgorithmRequest& r) { r.only = 4; }).text, "rank 4 is not in 0..3");
    EXPECT_EQ(refusal([](AlgorithmRequest& r) {
                r.collective = r.collective == Collective::reduce ? Collective::gather : Collective::reduce;
              }).code,
              Code::invalid_argument);
    if (is_rooted(algorithm.collective)) {
      EXPECT_EQ(refusal([](AlgorithmRequest& r) { r.root = -1; }).text, "root -1 is not in 0..3");
    }
    if (is_reduction(algorithm.collective) && !algorithm.supports_canonical(7)) {
      EXPECT_EQ(refusal([](AlgorithmRequest& r) { r.ranks = 7, r.order = Order::canonical; }).code, Code::unsupported);
    }
  }
}

TEST(Algorithms, OfAThousandRanksAreReadForOneRankInLittleMemory) {
  const AlgorithmRequest request{Collective::all_reduce, 1000, 0, Order::fast, 777};
  const auto ring = find_algorithm(Collective::all_reduce, "ring")->build(request);
  ASSERT_TRUE(ring.ok());
  EXPECT_EQ(ring->steps.size(), 4u * 999);  // two rounds of 999, as receiver and as sender
}

}  // namespace
}  // namespace sluice
