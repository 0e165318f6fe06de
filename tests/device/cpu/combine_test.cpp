// Every type, operation, form, tree and instruction set against a reference that shares no code with the kernels.
#include "device/cpu/combine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "device/cpu/kernels.h"
#include "tests/support/reference.h"

namespace sluice {
namespace {

using test::Bytes;
using test::ReferenceSource;

// --- operands -----------------------------------------------------------------------------------------------

// Any finite values and now and then infinity, NaN, zeros of both signs and denormals; exponents near each other often
// enough for rounding to matter.
float any_float(std::uint64_t bits) {
  constexpr float kSpecial[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-140f, 3e38f, -3e38f, 0x1p-126f};
  if (bits % 16 == 0) return kSpecial[(bits >> 8) % std::size(kSpecial)];
  const int exponent = static_cast<int>((bits >> 4) % 9) - 4;
  const float magnitude = std::ldexp(1 + static_cast<float>(bits >> 41) * 0x1p-23f, exponent);
  return (bits >> 40) % 2 == 0 ? magnitude : -magnitude;
}

std::size_t bytes_of(DataType type, Form form) {
  return form == Form::element ? element_bytes(type) : accumulator_bytes(type);
}

void put_any(DataType type, Form form, std::uint64_t bits, std::byte* to) {
  const float value = any_float(bits);
  if (type == DataType::float64) {
    const double wide = static_cast<double>(value) * (1 + static_cast<double>(bits % 1000) * 0x1p-50);
    std::memcpy(to, &wide, sizeof wide);
  } else if (is_float(type)) {
    if (form == Form::accumulator)
      std::memcpy(to, &value, sizeof value);
    else if (bits % 64 == 1)
      std::memcpy(to, &bits, element_bytes(type));
    else
      test::encode(type, static_cast<double>(value), to);
  } else {
    std::memcpy(to, &bits, element_bytes(type));
  }
}

Bytes any_values(DataType type, Form form, std::size_t count, std::uint64_t seed) {
  const std::size_t bytes = bytes_of(type, form);
  Bytes values(count * bytes);
  for (std::size_t i = 0; i < count; ++i) put_any(type, form, mix64(mix64(seed) + i), values.data() + i * bytes);
  return values;
}

// Runs combine() on copies at odd addresses, with guard bytes on both sides of each target.
struct Call {
  CombineRule rule;
  std::vector<ReferenceSource> sources;
  std::vector<Form> targets{Form::element};
  std::size_t count = 0;
  int in_place = -1;  // the source that is the first target's memory
  std::size_t offset = 1;

  std::vector<Bytes> run(const Kernels& kernels) const {
    std::vector<Bytes> from;
    std::vector<CombineSource> source_views;
    for (const ReferenceSource& source : sources) {
      from.emplace_back(source.bytes.size() + offset + kGuard);
      if (!source.bytes.empty()) std::memcpy(from.back().data() + offset, source.bytes.data(), source.bytes.size());
      source_views.push_back({from.back().data() + offset, source.form, source.leaf});
    }
    std::vector<Bytes> to;
    std::vector<CombineTarget> target_views;
    for (const Form form : targets) {
      to.emplace_back(count * bytes_of(rule.type, form) + kGuard + offset, std::byte{0xa5});
      target_views.push_back({to.back().data() + offset, form});
    }
    if (in_place >= 0) target_views[0].data = from[static_cast<std::size_t>(in_place)].data() + offset;
    combine_with(kernels, rule, source_views, target_views, count);
    return results(to, target_views);
  }

 private:
  static constexpr std::size_t kGuard = 64;

  std::vector<Bytes> results(const std::vector<Bytes>& to, const std::vector<CombineTarget>& views) const {
    std::vector<Bytes> out;
    for (std::size_t t = 0; t < to.size(); ++t) {
      const auto* begin = static_cast<const std::byte*>(views[t].data);
      out.emplace_back(begin, begin + count * bytes_of(rule.type, targets[t]));
      const bool elsewhere = t == 0 && in_place >= 0;
      for (std::size_t i = 0; !elsewhere && i < offset; ++i) EXPECT_EQ(to[t][i], std::byte{0xa5}) << "before target";
      for (std::size_t i = to[t].size() - kGuard; !elsewhere && i < to[t].size(); ++i)
        EXPECT_EQ(to[t][i], std::byte{0xa5}) << "behind target";
    }
    return out;
  }
};

DataType compared_as(DataType type, Form form) {
  return form == Form::accumulator && is_float(type) && type != DataType::float64 ? DataType::float32 : type;
}

// In every instruction set. A single source keeps a NaN's payload; a fold gives the one quiet NaN.
void expect_reference(const Call& call) {
  const Bytes wants[] = {test::combine(call.rule, call.sources, Form::element),
                         test::combine(call.rule, call.sources, Form::accumulator)};
  const bool exact = call.sources.size() > 1;
  for (const Kernels* kernels : runnable_kernels()) {
    const std::vector<Bytes> got = call.run(*kernels);
    for (std::size_t t = 0; t < got.size(); ++t)
      ASSERT_EQ(test::first_difference(compared_as(call.rule.type, call.targets[t]), got[t],
                                       wants[static_cast<std::size_t>(call.targets[t])], exact),
                -1)
          << name(call.rule.type) << " " << name(call.rule.reduction.op) << " n " << call.sources.size() << " count "
          << call.count << " target " << t << " tree " << static_cast<int>(call.rule.tree) << " set " << kernels->name;
  }
}

// --- every type x operation ----------------------------------------------------------------------------

struct Case {
  DataType type;
  ReduceOp op;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops())
      if (check_pair(type, op).ok()) all.push_back({type, op});
  return all;
}

class Combine : public testing::TestWithParam<Case> {
 protected:
  Call call(std::size_t n, std::size_t count, std::uint64_t seed, Tree tree = Tree::chain) const {
    Call one;
    one.rule.type = GetParam().type;
    one.rule.reduction.op = GetParam().op;
    one.rule.reduction.factor = -2.75;
    one.rule.tree = tree;
    one.rule.final = seed % 2 == 0;
    one.rule.ranks = static_cast<int>(n) + 3;
    one.rule.canonical_nan = seed % 3 == 0;
    one.count = count;
    for (std::size_t i = 0; i < n; ++i) {
      const Form form = mix64(seed + 7 * i) % 2 == 0 ? Form::element : Form::accumulator;
      one.sources.push_back({any_values(one.rule.type, form, count, seed * 1000 + i), form, mix64(seed + i) % 3 == 0});
    }
    return one;
  }

  void set_forms(Call& one, Form form) const {
    for (std::size_t i = 0; i < one.sources.size(); ++i)
      one.sources[i] = {any_values(one.rule.type, form, one.count, 99 + i), form, one.sources[i].leaf};
  }

  // The same call for `count` values from `first` on.
  static Call piece(const Call& whole, std::size_t first, std::size_t count) {
    Call one = whole;
    one.count = count;
    for (ReferenceSource& source : one.sources) {
      const std::size_t bytes = bytes_of(whole.rule.type, source.form);
      const auto begin = source.bytes.begin() + static_cast<std::ptrdiff_t>(first * bytes);
      source.bytes = Bytes(begin, begin + static_cast<std::ptrdiff_t>(count * bytes));
    }
    return one;
  }
};

TEST_P(Combine, FoldsAnyNumberOfSourcesOfMixedFormsInBothTrees) {
  std::uint64_t seed = 1;
  for (const std::size_t n : {1, 2, 3, 4, 5, 7, 8, 9, 16})
    for (const Tree tree : {Tree::chain, Tree::canonical})
      for (const Form to : {Form::element, Form::accumulator}) {
        Call one = call(n, 77 + n, ++seed, tree);
        one.targets = {to};
        one.offset = seed % 4;
        expect_reference(one);
      }
}

TEST_P(Combine, AgreesAtEveryCountAroundBlocksAndVectors) {
  std::uint64_t seed = 100;
  for (const std::size_t count : {0, 1, 2, 3, 15, 16, 17, 31, 33, 63, 65, 511, 513, 1024, 1025, 4099})
    for (const std::size_t n : {2, 3}) {
      Call one = call(n, count, ++seed, Tree::canonical);
      if (n == 2) set_forms(one, Form::element);
      expect_reference(one);
    }
}

TEST_P(Combine, FoldsTwoElementsOrTwoValuesInOnePass) {
  for (const Form form : {Form::element, Form::accumulator})
    for (std::size_t offset = 0; offset < 4; ++offset) {
      Call one = call(2, 403, 5 + offset);
      set_forms(one, form);
      for (ReferenceSource& source : one.sources) source.leaf = false;
      one.targets = {form};
      one.offset = offset;
      expect_reference(one);
    }
}

TEST_P(Combine, WritesEveryTargetInItsForm) {
  for (const std::size_t n : {1, 2, 9}) {
    Call one = call(n, 4999, 40 + n, Tree::canonical);
    one.targets = {Form::accumulator, Form::element, Form::element, Form::accumulator};
    expect_reference(one);
  }
}

TEST_P(Combine, MayOverwriteAnyOfItsSources) {
  for (const Form form : {Form::element, Form::accumulator})
    for (const std::size_t n : {1, 2, 3, 5})
      for (std::size_t in_place = 0; in_place < n; ++in_place)
        for (const Tree tree : {Tree::chain, Tree::canonical}) {
          Call one = call(n, n == 2 && in_place == 1 ? 4200 : 67, 60 + n, tree);
          set_forms(one, form);
          one.targets = {form};
          if (n > 2) one.targets = {form, Form::element};
          one.in_place = static_cast<int>(in_place);
          expect_reference(one);
          if (n != 2) continue;
          one.targets = {form, form};
          expect_reference(one);
        }
}

TEST_P(Combine, DoesNotDependOnHowABufferIsCut) {
  const std::size_t count = 1237;
  for (const Tree tree : {Tree::chain, Tree::canonical})
    for (const Kernels* kernels : runnable_kernels()) {
      const Call whole = call(5, count, 80, tree);
      Bytes got;
      for (std::size_t first = 0, step = 1; first < count; first += step, step = step * 2 + 1) {
        const Bytes part = piece(whole, first, std::min(step, count - first)).run(*kernels)[0];
        got.insert(got.end(), part.begin(), part.end());
      }
      EXPECT_EQ(got, whole.run(*kernels)[0]) << kernels->name;
    }
}

INSTANTIATE_TEST_SUITE_P(Pairs, Combine, testing::ValuesIn(cases()), [](const auto& one) {
  return std::string(name(one.param.type)) + "_" + std::string(name(one.param.op));
});

// --- particular promises ---------------------------------------------------------------------------------------

template <typename T>
T combined(DataType type, Reduction reduction, std::vector<T> values, bool final = false, int ranks = 1,
           bool leaf = false) {
  std::vector<CombineSource> sources;
  for (const T& value : values) sources.push_back({&value, Form::element, leaf});
  T out{};
  const CombineTarget target{&out, Form::element};
  combine({type, reduction, Tree::chain, final, ranks, false}, sources, {&target, 1}, 1);
  return out;
}

TEST(CombineIntegers, Wrap) {
  EXPECT_EQ(combined<std::int8_t>(DataType::int8, ReduceOp::sum, {100, 100}), -56);
  EXPECT_EQ(combined<std::uint8_t>(DataType::uint8, ReduceOp::prod, {16, 17}), 16);
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::sum, {INT32_MAX, 1}), INT32_MIN);
  EXPECT_EQ(combined<std::int64_t>(DataType::int64, ReduceOp::prod, {INT64_MIN, -1}), INT64_MIN);
  EXPECT_EQ(combined<std::uint64_t>(DataType::uint64, ReduceOp::sum, {UINT64_MAX, 2}), 1u);
}

TEST(CombineIntegers, AverageTruncatesToZero) {
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::avg, {-3, -4}, true, 4), -1);
  EXPECT_EQ(combined<std::int64_t>(DataType::int64, ReduceOp::avg, {-3, -4}, true, 2), -3);
  EXPECT_EQ(combined<std::int8_t>(DataType::int8, ReduceOp::avg, {-128, 1}, true, 4096), 0);
  EXPECT_EQ(combined<std::uint32_t>(DataType::uint32, ReduceOp::avg, {UINT32_MAX, 0}, true, 3), UINT32_MAX / 3);
  EXPECT_EQ(combined<std::uint64_t>(DataType::uint64, ReduceOp::avg, {UINT64_MAX, 0}, true, 7), UINT64_MAX / 7);
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::avg, {-3, -4}, false, 4), -7);
}

TEST(CombineIntegers, AverageIsExactForEveryRankCountNearMultiples) {
  for (int ranks = 1; ranks <= 4096; ranks = ranks < 64 ? ranks + 1 : ranks * 2 - 1)
    for (const std::int64_t about : {std::int64_t{0}, std::int64_t{1}, INT32_MAX / std::int64_t{ranks}})
      for (int off = -2; off <= 2; ++off) {
        const auto value =
            static_cast<std::int32_t>(std::clamp<std::int64_t>(about * ranks + off, INT32_MIN, INT32_MAX));
        EXPECT_EQ(combined<std::int32_t>(DataType::int32, ReduceOp::avg, {value, 0}, true, ranks), value / ranks);
        const auto natural = static_cast<std::uint32_t>(value);
        EXPECT_EQ(combined<std::uint32_t>(DataType::uint32, ReduceOp::avg, {natural, 0}, true, ranks),
                  natural / static_cast<std::uint32_t>(ranks));
      }
}

TEST(CombineIntegers, PremulsumTakesTheFactorTruncatedAndSaturated) {
  EXPECT_EQ(combined<std::int32_t>(DataType::int32, Reduction::premul_sum(2.9), {3, 4}, false, 1, true), 14);
  EXPECT_EQ(combined<std::int8_t>(DataType::int8, Reduction::premul_sum(-1e9), {1, 0}, false, 1, true), -128);
  EXPECT_EQ(combined<std::uint8_t>(DataType::uint8, Reduction::premul_sum(-5), {9, 9}, false, 1, true), 0);
  EXPECT_EQ(combined<std::uint64_t>(DataType::uint64, Reduction::premul_sum(1e30), {1, 0}, false, 1, true), UINT64_MAX);
  EXPECT_EQ(combined<std::int64_t>(DataType::int64, Reduction::premul_sum(NAN), {1, 5}, false, 1, true), 0);
}

TEST(CombineFloats, PremulsumLeavesWhatIsNoLeaf) {
  const float a = 3;
  const float b = 5;
  const CombineSource sources[] = {{&a, Form::element, true}, {&b, Form::element, false}};
  float out = 0;
  const CombineTarget target{&out, Form::element};
  combine({DataType::float32, Reduction::premul_sum(2), Tree::chain, false, 2, false}, sources, {&target, 1}, 1);
  EXPECT_EQ(out, 11);
}

TEST(CombineFloats, MinAndMaxGiveNanAndOrderZeros) {
  for (const float other : {1.0f, INFINITY, -0.0f})
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
      EXPECT_TRUE(std::isnan(combined<float>(DataType::float32, op, {NAN, other})));
      EXPECT_TRUE(std::isnan(combined<float>(DataType::float32, op, {other, NAN})));
    }
  EXPECT_TRUE(std::signbit(combined<float>(DataType::float32, ReduceOp::min, {0.0f, -0.0f})));
  EXPECT_TRUE(std::signbit(combined<float>(DataType::float32, ReduceOp::min, {-0.0f, 0.0f})));
  EXPECT_FALSE(std::signbit(combined<double>(DataType::float64, ReduceOp::max, {0.0, -0.0})));
  EXPECT_FALSE(std::signbit(combined<double>(DataType::float64, ReduceOp::max, {-0.0, 0.0})));
}

TEST(CombineFloats, AFoldGivesTheOneQuietNanAndACopyOnlyWhenAsked) {
  const std::uint32_t odd_nan = 0xffc12345;
  const auto run = [&](std::size_t n, bool canonical_nan) {
    const std::vector<CombineSource> sources(n, {&odd_nan, Form::element, true});
    std::uint32_t out = 0;
    const CombineTarget target{&out, Form::element};
    combine({DataType::float32, ReduceOp::sum, Tree::canonical, true, static_cast<int>(n), canonical_nan}, sources,
            {&target, 1}, 1);
    return out;
  };
  EXPECT_EQ(run(2, false), 0x7fc00000u);
  EXPECT_EQ(run(5, true), 0x7fc00000u);
  EXPECT_EQ(run(1, true), 0x7fc00000u);
  EXPECT_EQ(run(1, false), odd_nan);
}

TEST(CombineFloats, HalvesAreRoundedOnceForAllSources) {
  // 2048 + 1 is a tie in float16; rounded after each step the ones would be lost, in float32 they count.
  const std::uint16_t big = 0x6800;
  const std::uint16_t one = 0x3c00;
  EXPECT_EQ(combined<std::uint16_t>(DataType::float16, ReduceOp::sum, {big, one, one}), 0x6801);
}

TEST(CombineMany, FoldsAsManySourcesAsThereMayBeRanks) {
  const std::size_t n = kCombineSourcesMax;
  const auto inputs = test::order_sensitive_inputs(DataType::float32, static_cast<int>(n), 3);
  std::vector<CombineSource> sources;
  for (const Bytes& input : inputs) sources.push_back({input.data(), Form::element, true});
  Bytes got(3 * sizeof(float));
  const CombineTarget target{got.data(), Form::element};
  combine({DataType::float32, ReduceOp::avg, Tree::canonical, true, static_cast<int>(n), true}, sources, {&target, 1},
          3);
  EXPECT_EQ(got, test::reduce(inputs, DataType::float32, ReduceOp::avg));
}

TEST(CombineTrees, CanonicalIsTheTreeThatSplitsAtTheLargestPowerOfTwo) {
  const auto inputs = test::order_sensitive_inputs(DataType::float32, 7, 512);
  const auto at = [&](std::size_t rank, std::size_t i) {
    float value = 0;
    std::memcpy(&value, inputs[rank].data() + i * sizeof value, sizeof value);
    return value;
  };
  std::vector<CombineSource> sources;
  for (const Bytes& input : inputs) sources.push_back({input.data(), Form::element, true});
  std::vector<float> got(512);
  const CombineTarget target{got.data(), Form::element};
  combine({DataType::float32, ReduceOp::sum, Tree::canonical, true, 7, true}, sources, {&target, 1}, 512);
  for (std::size_t i = 0; i < 512; ++i) {
    const float left = (at(0, i) + at(1, i)) + (at(2, i) + at(3, i));
    const float right = (at(4, i) + at(5, i)) + at(6, i);
    ASSERT_EQ(got[i], left + right) << i;
  }
}

}  // namespace
}  // namespace sluice
