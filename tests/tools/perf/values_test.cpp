// Exact inputs must be exact in every order: folded here by the combine kernels in random orders, with partial results stored
// as elements. Sensitive ones must not be. And a changed bit must be seen.
#include "tools/perf/values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "device/cpu/combine.h"
#include "tools/perf/image.h"

namespace sluice::tools {
namespace {

using Bytes = std::vector<std::byte>;

ValueRule rule_for(DataType type, ReduceOp op, int ranks) {
  return {.type = type,
          .reduces = true,
          .reduction = op == ReduceOp::premulsum ? Reduction::premul_sum(premul_factor(type)) : Reduction(op),
          .ranks = ranks,
          .seed = 42};
}

// Folds the ranks' inputs one by one in the order given, every partial sum rounded to an element.
Bytes fold(const ValueRule& rule, const std::vector<Rank>& order, std::size_t count) {
  const std::size_t bytes = count * element_bytes(rule.type);
  Bytes sum(bytes);
  draw_input(rule, order[0], 0, count, sum.data());
  for (std::size_t i = 1; i < order.size(); ++i) {
    Bytes other(bytes);
    draw_input(rule, order[i], 0, count, other.data());
    const CombineSource sources[] = {{sum.data(), Form::element, i == 1}, {other.data(), Form::element, true}};
    const CombineTarget target{sum.data(), Form::element};
    combine({.type = rule.type,
             .reduction = rule.reduction,
             .tree = Tree::chain,
             .final = i + 1 == order.size(),
             .ranks = rule.ranks,
             .canonical_nan = false},
            sources, {&target, 1}, count);
  }
  return sum;
}

std::vector<Rank> random_order(int ranks, Rng& rng) {
  std::vector<Rank> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  return order;
}

class Values : public testing::TestWithParam<int> {};  // number of ranks
INSTANTIATE_TEST_SUITE_P(Ranks, Values, testing::Values(2, 3, 7, 16, 40));

TEST_P(Values, EveryOrderGivesTheExpectedBits) {
  constexpr std::size_t kCount = 500;
  Rng rng(3);
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops()) {
      if (!check_pair(type, op).ok()) continue;
      const ValueRule rule = rule_for(type, op, GetParam());
      const std::size_t element = element_bytes(type);
      Bytes want(kCount * element);
      draw_reduced(rule, 0, kCount, want.data());
      for (int attempt = 0; attempt < 4; ++attempt) {
        const Bytes got = fold(rule, random_order(GetParam(), rng), kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          const bool same = std::memcmp(got.data() + i * element, want.data() + i * element, element) == 0;
          EXPECT_TRUE(same || acceptable(rule, i, got.data() + i * element))
              << name(type) << " " << name(op) << " element " << i << ": " << std::hex
              << load_bits(&got[i * element], element) << " expected " << load_bits(&want[i * element], element);
        }
      }
    }
}

TEST_P(Values, SumsUseTheWholeMantissa) {
  const ValueRule rule = rule_for(DataType::float32, ReduceOp::sum, GetParam());
  Bytes want(4000);
  draw_reduced(rule, 0, 1000, want.data());
  std::vector<std::uint64_t> distinct;
  for (std::size_t i = 0; i < 1000; ++i) distinct.push_back(load_bits(&want[4 * i], 4));
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  EXPECT_GT(distinct.size(), 950u);
}

TEST_P(Values, SensitiveSumsDependOnTheOrder) {
  for (const DataType type : {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16,
                              DataType::float8_e4m3, DataType::float8_e5m2})
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::premulsum, ReduceOp::prod}) {
      if (GetParam() == 2) continue;  // one order only
      ValueRule rule = rule_for(type, op, GetParam());
      rule.sensitive = true;
      ASSERT_TRUE(depends_on_order(rule));
      Rng rng(5);
      const Bytes first = fold(rule, random_order(GetParam(), rng), 1000);
      bool different = false;
      for (int attempt = 0; attempt < 5; ++attempt)
        different |= fold(rule, random_order(GetParam(), rng), 1000) != first;
      EXPECT_TRUE(different) << name(type) << " " << name(op);
    }
}

TEST_P(Values, SensitiveSumsInAnyOrderAreWithinTheBound) {
  constexpr std::size_t kCount = 2000;
  Rng rng(9);
  for (const DataType type : all_data_types())
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::premulsum, ReduceOp::prod}) {
      ValueRule rule = rule_for(type, op, GetParam());
      rule.sensitive = true;
      if (!depends_on_order(rule)) continue;
      const Bytes got = fold(rule, random_order(GetParam(), rng), kCount);
      for (std::size_t i = 0; i < kCount; ++i)
        ASSERT_TRUE(acceptable(rule, i, &got[i * element_bytes(type)])) << name(type) << " " << name(op) << " " << i;
    }
}

class CanonicalValues : public testing::TestWithParam<int> {};                             // number of ranks
INSTANTIATE_TEST_SUITE_P(Ranks, CanonicalValues, testing::Values(2, 3, 5, 7, 8, 13, 16));  // sources of one combine

TEST_P(CanonicalValues, AreWhatTheCanonicalTreeOfTheKernelsGives) {
  constexpr std::size_t kCount = 300;
  for (const DataType type : all_data_types())
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::premulsum, ReduceOp::prod}) {
      ValueRule rule = rule_for(type, op, GetParam());
      rule.sensitive = rule.canonical = true;
      if (!depends_on_order(rule)) continue;
      const std::size_t bytes = kCount * element_bytes(type);
      std::vector<Bytes> inputs;
      std::vector<CombineSource> sources;
      for (Rank rank = 0; rank < GetParam(); ++rank) {
        draw_input(rule, rank, 0, kCount, inputs.emplace_back(bytes).data());
        sources.push_back({inputs.back().data(), Form::element, true});
      }
      Bytes got(bytes);
      Bytes want(bytes);
      const CombineTarget target{got.data(), Form::element};
      combine({.type = type,
               .reduction = rule.reduction,
               .tree = Tree::canonical,
               .final = true,
               .ranks = rule.ranks,
               .canonical_nan = true},
              sources, {&target, 1}, kCount);
      draw_reduced(rule, 0, kCount, want.data());
      EXPECT_EQ(got, want) << name(type) << " " << name(op);
    }
}

TEST(ValuesBroken, AWrongBitIsNotAcceptable) {
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops()) {
      if (!check_pair(type, op).ok()) continue;
      const ValueRule rule = rule_for(type, op, 4);
      const std::size_t element = element_bytes(type);
      const Image image{.bytes = 100 * element, .layers = {{.at = 0, .count = 100, .source = {}, .source_at = 0}}};
      Bytes memory(image.bytes);
      paint(rule, image, memory.data());
      EXPECT_EQ(compare(rule, image, memory.data()).wrong, 0u);
      memory[50 * element + element - 1] ^= std::byte{0x40};
      const Differences found = compare(rule, image, memory.data());
      EXPECT_EQ(found.wrong, 1u) << name(type) << " " << name(op);
      EXPECT_NE(found.first.find("element 50"), std::string::npos) << found.first;
    }
}

TEST(ValuesBroken, ALostSummandIsOutsideTheErrorBound) {
  ValueRule rule = rule_for(DataType::float32, ReduceOp::sum, 8);
  rule.sensitive = true;
  const Bytes got = fold(rule, {0, 1, 2, 3, 4, 5, 6}, 1000);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < 1000; ++i) refused += acceptable(rule, i, &got[4 * i]) ? 0 : 1;
  EXPECT_EQ(refused, 1000u);
}

TEST(ValuesBroken, CanonicalOrderAcceptsNothingButItsBits) {
  ValueRule rule = rule_for(DataType::float32, ReduceOp::sum, 8);
  rule.sensitive = rule.canonical = true;
  Bytes one(4);
  draw_reduced(rule, 0, 1, one.data());
  one[0] ^= std::byte{1};
  EXPECT_FALSE(acceptable(rule, 0, one.data()));
  rule.canonical = false;
  EXPECT_TRUE(acceptable(rule, 0, one.data()));
}

TEST(ValuesBroken, AByteBesidesTheResultIsSeen) {
  const ValueRule rule{.type = DataType::int32, .ranks = 2};
  const Image image{.bytes = 64 + 40 + 64, .layers = {{.at = 64, .count = 10, .source = 1, .source_at = 3}}};
  Bytes memory(image.bytes);
  paint(rule, image, memory.data());
  for (const std::size_t at : {std::size_t{63}, std::size_t{104}}) {
    Bytes broken = memory;
    broken[at] ^= std::byte{1};
    EXPECT_EQ(compare(rule, image, broken.data()).wrong, 1u);
  }
}

TEST(Images, LaterLayersCoverEarlierOnes) {
  const ValueRule rule{.type = DataType::uint8, .ranks = 3};
  const Image covered{.bytes = 30,
                      .layers = {{.at = 0, .count = 30, .source = 0, .source_at = 0},
                                 {.at = 10, .count = 10, .source = 2, .source_at = 5}}};
  Bytes memory(30);
  paint(rule, covered, memory.data());
  Bytes want(30);
  draw_input(rule, 0, 0, 30, want.data());
  draw_input(rule, 2, 5, 10, want.data() + 10);
  EXPECT_EQ(memory, want);
}

}  // namespace
}  // namespace sluice::tools
