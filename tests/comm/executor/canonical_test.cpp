// Order::canonical on inputs whose sum depends on the order: the same bits from every algorithm that offers it, on every
// transport, with every slice size and number of ranks, and those of a separate, dumb computation.
#include <gtest/gtest.h>

#include <memory>

#include "comm/algorithms/algorithms.h"
#include "tests/comm/executor/loop_fixture.h"
#include "tests/comm/executor/rank_threads.h"

namespace sluice {
namespace {

using test::CaseRun;
using test::CollectiveCase;

constexpr DataType kTypes[] = {DataType::float32, DataType::bfloat16, DataType::float16};
constexpr const char* kSliceBytes[] = {"64", "256", "1000", "4096", "16384"};
constexpr int kRanksMin = 2;
constexpr int kRanksMax = 9;

// Every algorithm of every reduction that offers the canonical order.
std::vector<CollectiveCase> cases_of(int ranks) {
  std::vector<CollectiveCase> cases;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (!is_reduction(algorithm.collective) || !algorithm.supports(ranks) || !algorithm.supports_canonical(ranks))
      continue;
    for (const DataType type : kTypes) {
      CollectiveCase one;
      one.kind = algorithm.collective == Collective::all_reduce ? OperationKind::all_reduce
                 : algorithm.collective == Collective::reduce   ? OperationKind::reduce
                                                                : OperationKind::reduce_scatter;
      one.ranks = ranks;
      one.type = type;
      one.count = 1501;
      one.root = ranks / 2;
      one.in_place = cases.size() % 2 == 1;
      one.order = Order::canonical;
      one.algorithm = std::string(algorithm.name);
      one.order_sensitive = true;
      cases.push_back(one);
    }
  }
  return cases;
}

struct Way {
  std::string transport;
  std::string slice_bytes;
};
class CanonicalOrder : public testing::TestWithParam<Way> {};
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const char* transport : {"loop", "shm", "tcp"})
    for (const char* slice : kSliceBytes) all.push_back({transport, slice});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ways, CanonicalOrder, testing::ValuesIn(ways()), [](const auto& tested) {
  return tested.param.transport + "_slices_of_" + tested.param.slice_bytes;
});

std::string run_on_loop(const std::vector<std::unique_ptr<CaseRun>>& runs, int ranks, const std::string& slice_bytes) {
  test::LoopJob job(ranks, {}, "10min", {{Setting::slot_bytes, "16384"}, {Setting::slice_bytes, slice_bytes}});
  for (const auto& run : runs) {
    std::vector<Work> works;
    for (Communicator& world : job.worlds) works.push_back(run->post(world));
    for (Work& work : works)
      if (const Status done = work.wait(); !done.ok()) return done.text();
  }
  return {};
}

std::string run_on_threads(const std::vector<std::unique_ptr<CaseRun>>& runs, int ranks, const Way& way) {
  return test::run_ranks(
      {ranks, way.transport, {{Setting::slot_bytes, "16384"}, {Setting::slice_bytes, way.slice_bytes}}},
      [&](Runtime& runtime) -> std::string {
        Communicator world = runtime.world();
        for (const auto& run : runs)
          if (const Status done = run->post(world).wait(); !done.ok()) return done.text();
        return world.close().text();
      });
}

TEST_P(CanonicalOrder, GivesTheReferencesBitsWithEveryAlgorithm) {
  const Way way = GetParam();
  int results = 0;
  for (int ranks = kRanksMin; ranks <= kRanksMax; ++ranks) {
    const std::vector<CollectiveCase> cases = cases_of(ranks);
    std::vector<std::unique_ptr<CaseRun>> runs;
    runs.reserve(cases.size());
    for (const CollectiveCase& one : cases) runs.push_back(std::make_unique<CaseRun>(one));
    ASSERT_EQ(way.transport == "loop" ? run_on_loop(runs, ranks, way.slice_bytes) : run_on_threads(runs, ranks, way),
              "");
    for (const auto& run : runs) ASSERT_EQ(run->check(), "") << way.transport << " slices of " << way.slice_bytes;
    results += static_cast<int>(runs.size());
  }
  std::printf("  %d results, 0 with other bits\n", results);
}

TEST(CanonicalOrderBroken, AnotherOrderGivesOtherBits) {
  for (const DataType type : kTypes) {
    const auto inputs = test::order_sensitive_inputs(type, 5, 1501);
    EXPECT_GE(test::first_difference(type, test::reduce(inputs, type, ReduceOp::sum, Tree::chain),
                                     test::reduce(inputs, type, ReduceOp::sum, Tree::canonical)),
              0)
        << name(type) << ": these inputs can't tell orders apart";
  }
}

}  // namespace
}  // namespace sluice
