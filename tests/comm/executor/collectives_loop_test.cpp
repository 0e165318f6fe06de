// Every collective with every algorithm over the loop transport, against the reference: one thread, seeded order of everything.
#include <gtest/gtest.h>

#include <optional>

#include "comm/algorithms/algorithms.h"
#include "tests/comm/executor/loop_fixture.h"

namespace sluice {
namespace {

using test::CaseRun;
using test::CollectiveCase;
using test::LoopJob;

std::optional<Collective> collective_of(OperationKind kind) {
  switch (kind) {
    case OperationKind::all_gather_v: return Collective::all_gather;
    case OperationKind::reduce_scatter_v: return Collective::reduce_scatter;
    case OperationKind::gather_v: return Collective::gather;
    case OperationKind::scatter_v: return Collective::scatter;
    case OperationKind::all_to_all_v: return Collective::all_to_all;
    default: return parse_collective(name(kind));
  }
}

constexpr OperationKind kKinds[] = {
    OperationKind::all_reduce,  OperationKind::reduce_scatter,   OperationKind::all_gather,
    OperationKind::broadcast,   OperationKind::reduce,           OperationKind::gather,
    OperationKind::scatter,     OperationKind::all_to_all,       OperationKind::all_gather_v,
    OperationKind::gather_v,    OperationKind::reduce_scatter_v, OperationKind::scatter_v,
    OperationKind::all_to_all_v};

bool is_v(OperationKind kind) { return kind >= OperationKind::all_gather_v && kind <= OperationKind::all_to_all_v; }

class CollectivesOverLoop : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, CollectivesOverLoop, testing::Values(1, 2, 3, 4, 5, 7, 8, 9));

TEST_P(CollectivesOverLoop, EveryAlgorithmGivesTheReferencesBits) {
  const int ranks = GetParam();
  LoopOptions options;
  options.seed = static_cast<std::uint64_t>(ranks);
  LoopJob loop(ranks, options);
  int cases = 0;
  for (const OperationKind kind : kKinds)
    for (const Algorithm& algorithm : all_algorithms()) {
      if (algorithm.collective != collective_of(kind) || !algorithm.supports(ranks)) continue;
      if (is_v(kind) && !algorithm.uneven) continue;
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{63}, std::size_t{1003}})
        for (const bool in_place : {false, true})
          for (const Order order : {Order::fast, Order::canonical}) {
            if (order == Order::canonical &&
                (!is_reduction(algorithm.collective) || !algorithm.supports_canonical(ranks)))
              continue;
            if (in_place && kind == OperationKind::all_to_all_v) continue;
            CollectiveCase one{kind, ranks, order == Order::canonical ? DataType::bfloat16 : DataType::float32};
            one.op = ++cases % 3 == 0 ? ReduceOp::avg : cases % 3 == 1 ? ReduceOp::sum : ReduceOp::premulsum;
            one.count = count;
            one.root = cases % ranks;
            one.in_place = in_place;
            one.order = order;
            one.algorithm = std::string(algorithm.name);
            one.misaligned = static_cast<std::size_t>(cases % 5);
            one.seed = static_cast<std::uint64_t>(cases);
            one.order_sensitive = order == Order::canonical && ranks > 2 && one.op == ReduceOp::sum;
            ASSERT_EQ(loop.run(one), "");
          }
    }
  EXPECT_GT(cases, 100);
}

TEST(CollectivesOverLoopTypes, EveryTypeAndOperation) {
  LoopJob loop(3);
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops())
      for (const OperationKind kind :
           {OperationKind::all_reduce, OperationKind::reduce_scatter, OperationKind::reduce}) {
        if (!check_pair(type, op).ok()) continue;
        CollectiveCase one{kind, 3, type, op, 517};
        ASSERT_EQ(loop.run(one), "");
      }
}

TEST(CollectivesOverLoopBroken, ACheckSeesAWrongByte) {
  CollectiveCase one{OperationKind::all_reduce, 2};
  CaseRun run(one);
  EXPECT_NE(run.check(), "") << "nothing was run, so the outputs can't be right";
}

}  // namespace
}  // namespace sluice
