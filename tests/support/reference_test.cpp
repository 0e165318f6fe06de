// The checker of all reductions, broken on purpose, and what its inputs promise.
#include "tests/support/reference.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using test::Bytes;
using test::ReferenceSource;

TEST(ReferenceBroken, SwappedOrderShowsOnOrderSensitiveInputs) {
  for (const DataType type :
       {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64, DataType::float8_e5m2})
    for (const int ranks : {3, 4, 7, 9}) {
      auto inputs = test::order_sensitive_inputs(type, ranks, 64);
      const Bytes want = test::reduce(inputs, type, ReduceOp::sum);
      std::swap(inputs.front(), inputs.back());
      EXPECT_NE(test::reduce(inputs, type, ReduceOp::sum), want) << name(type) << " ranks " << ranks;
    }
}

TEST(ReferenceBroken, ChainAndCanonicalDifferOnOrderSensitiveInputs) {
  const auto inputs = test::order_sensitive_inputs(DataType::float32, 8, 64);
  EXPECT_NE(test::reduce(inputs, DataType::float32, ReduceOp::sum, Tree::chain),
            test::reduce(inputs, DataType::float32, ReduceOp::sum, Tree::canonical));
}

TEST(ReferenceBroken, AMissingInputShowsOnWholeInputs) {
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops()) {
      if (!check_pair(type, op).ok() || op == ReduceOp::band || op == ReduceOp::bor) continue;
      auto inputs = test::whole_inputs(type, op, 4, 256);
      const Bytes want = test::reduce(inputs, type, op);
      inputs[2] = inputs[1];
      EXPECT_NE(test::reduce(inputs, type, op), want) << name(type) << " " << name(op);
    }
}

TEST(Reference, WholeInputsGiveOneResultInAnyOrderWithEveryPartialResultRounded) {
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops())
      for (const int ranks : {2, 3, 7, 16, 33}) {
        if (!check_pair(type, op).ok()) continue;
        const auto inputs = test::whole_inputs(type, op, ranks, 64);
        Reduction reduction(op);
        reduction.factor = op == ReduceOp::premulsum ? 2 : 1;
        const Bytes want = test::reduce(inputs, type, reduction);
        // Backwards, each partial result rounded to elements.
        ReferenceSource partial{inputs.back(), Form::element, true};
        for (int rank = ranks - 2; rank >= 0; --rank) {
          const CombineRule rule{type, reduction, Tree::chain, rank == 0, ranks, false};
          partial = {test::combine(rule, {partial, {inputs[static_cast<std::size_t>(rank)], Form::element, true}},
                                   Form::element),
                     Form::element, false};
        }
        EXPECT_EQ(test::first_difference(type, partial.bytes, want), -1)
            << name(type) << " " << name(op) << " ranks " << ranks;
      }
}

}  // namespace
}  // namespace sluice
