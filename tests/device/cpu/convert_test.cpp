// Every encoding of the small floats, and every rounding decision between two of them, by every instruction set.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/rng.h"
#include "device/cpu/combine.h"
#include "device/cpu/kernels.h"
#include "tests/support/reference.h"

namespace sluice {
namespace {

struct Case {
  DataType type;
  const Kernels* kernels;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2})
    for (const Kernels* kernels : runnable_kernels()) all.push_back({type, kernels});
  return all;
}

std::vector<float> widened(const Case& one, const test::Bytes& elements) {
  std::vector<float> values(elements.size() / element_bytes(one.type));
  one.kernels->types[static_cast<std::size_t>(one.type)].widen(reinterpret_cast<std::byte*>(values.data()),
                                                               elements.data(), values.size());
  return values;
}

test::Bytes narrowed(const Case& one, const std::vector<float>& values) {
  test::Bytes elements(values.size() * element_bytes(one.type));
  one.kernels->types[static_cast<std::size_t>(one.type)].narrow(
      elements.data(), reinterpret_cast<const std::byte*>(values.data()), values.size());
  return elements;
}

test::Bytes narrowed_by_reference(DataType type, const std::vector<float>& values) {
  test::Bytes elements(values.size() * element_bytes(type));
  for (std::size_t i = 0; i < values.size(); ++i)
    test::encode(type, static_cast<double>(values[i]), elements.data() + i * element_bytes(type));
  return elements;
}

test::Bytes every_encoding(DataType type) {
  const std::size_t bytes = element_bytes(type);
  test::Bytes all((std::size_t{1} << (8 * bytes)) * bytes);
  for (std::size_t code = 0; code < all.size() / bytes; ++code) std::memcpy(all.data() + code * bytes, &code, bytes);
  return all;
}

class SmallFloats : public testing::TestWithParam<Case> {};

TEST_P(SmallFloats, EveryEncodingWidensToItsValue) {
  const DataType type = GetParam().type;
  const test::Bytes all = every_encoding(type);
  const std::vector<float> values = widened(GetParam(), all);
  for (std::size_t code = 0; code < values.size(); ++code) {
    const double want = test::decode(type, all.data() + code * element_bytes(type));
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(values[code])) << code;
    else
      EXPECT_EQ(std::bit_cast<std::uint64_t>(static_cast<double>(values[code])), std::bit_cast<std::uint64_t>(want))
          << code;
  }
}

TEST_P(SmallFloats, EveryEncodingComesBackAndNanBecomesTheQuietOne) {
  const DataType type = GetParam().type;
  const std::size_t bytes = element_bytes(type);
  test::Bytes want = every_encoding(type);
  for (std::size_t at = 0; at < want.size(); at += bytes)
    if (std::isnan(test::decode(type, want.data() + at))) test::encode(type, std::nan(""), want.data() + at);
  EXPECT_EQ(test::first_difference(type, narrowed(GetParam(), widened(GetParam(), every_encoding(type))), want), -1);
}

TEST_P(SmallFloats, RoundsToNearestEvenOnBothSidesOfEveryTie) {
  const DataType type = GetParam().type;
  std::vector<float> values;
  for (const float value : widened(GetParam(), every_encoding(type))) {
    if (!std::isfinite(value)) continue;
    // The next encoding's value, found by its distance: half of it is the tie.
    test::Bytes code(element_bytes(type));
    test::encode(type, static_cast<double>(value), code.data());
    std::uint16_t next = 0;
    std::memcpy(&next, code.data(), code.size());
    ++next;
    std::memcpy(code.data(), &next, code.size());
    double above = test::decode(type, code.data());
    if (!std::isfinite(above)) above = static_cast<double>(value) * 1.5;
    const float tie = static_cast<float>((static_cast<double>(value) + above) / 2);
    for (const float one : {tie, std::nextafter(tie, -INFINITY), std::nextafter(tie, INFINITY)}) {
      values.push_back(one);
      values.push_back(-one);
    }
  }
  ASSERT_EQ(test::first_difference(type, narrowed(GetParam(), values), narrowed_by_reference(type, values)), -1);
}

TEST_P(SmallFloats, RoundsAnyFloat32LikeTheReference) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(mix64(i))));
    values.push_back(std::ldexp(1 + static_cast<float>(mix64(i) >> 40) * 0x1p-24f, static_cast<int>(i % 60) - 30));
  }
  const DataType type = GetParam().type;
  const std::ptrdiff_t at =
      test::first_difference(type, narrowed(GetParam(), values), narrowed_by_reference(type, values));
  ASSERT_EQ(at, -1) << values[static_cast<std::size_t>(at)];
}

INSTANTIATE_TEST_SUITE_P(Sets, SmallFloats, testing::ValuesIn(cases()), [](const auto& one) {
  return std::string(name(one.param.type)) + "_" + one.param.kernels->name;
});

int code_of(DataType type, float value) {
  int code = 0;
  from_float(type, value, &code);
  return code;
}

TEST(SmallFloatFormats, OverflowsAsEachFormatSays) {
  EXPECT_EQ(code_of(DataType::float8_e4m3, 1e9f), 0x7e);
  EXPECT_EQ(code_of(DataType::float8_e4m3, -INFINITY), 0xfe);
  EXPECT_EQ(code_of(DataType::float8_e4m3, 448), 0x7e);
  EXPECT_EQ(code_of(DataType::float8_e4m3, NAN), 0x7f);
  EXPECT_EQ(code_of(DataType::float8_e5m2, 57344), 0x7b);
  EXPECT_EQ(code_of(DataType::float8_e5m2, 61439), 0x7b);
  EXPECT_EQ(code_of(DataType::float8_e5m2, 61440), 0x7c);
  EXPECT_EQ(code_of(DataType::float16, 65519.996f), 0x7bff);
  EXPECT_EQ(code_of(DataType::float16, 65520), 0x7c00);
  EXPECT_EQ(code_of(DataType::bfloat16, std::numeric_limits<float>::max()), 0x7f80);
}

TEST(SmallFloatFormats, KnownEncodings) {
  EXPECT_EQ(code_of(DataType::float16, 1), 0x3c00);
  EXPECT_EQ(code_of(DataType::float16, -0.0f), 0x8000);
  EXPECT_EQ(code_of(DataType::float16, 0x1p-24f), 0x0001);
  EXPECT_EQ(code_of(DataType::float16, 0x1p-25f), 0x0000);  // a tie, to even
  EXPECT_EQ(code_of(DataType::bfloat16, 1), 0x3f80);
  EXPECT_EQ(code_of(DataType::float8_e4m3, 1), 0x38);
  EXPECT_EQ(code_of(DataType::float8_e5m2, 1), 0x3c);
  EXPECT_EQ(code_of(DataType::float32, 1), 0x3f800000);
  const std::uint8_t smallest = 1;
  EXPECT_EQ(to_float(DataType::float8_e4m3, &smallest), 0x1p-9f);
  EXPECT_EQ(to_float(DataType::float8_e5m2, &smallest), 0x1p-16f);
}

TEST(SmallFloatFormatsBroken, TheReferenceSeesTruncationInsteadOfRounding) {
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 100; ++i) values.push_back(1 + static_cast<float>(mix64(i) >> 40) * 0x1p-24f);
  const test::Bytes want = narrowed_by_reference(DataType::bfloat16, values);
  test::Bytes truncated(want.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    std::memcpy(truncated.data() + 2 * i, reinterpret_cast<const std::byte*>(&values[i]) + 2, 2);
  EXPECT_NE(test::first_difference(DataType::bfloat16, truncated, want), -1);
}

}  // namespace
}  // namespace sluice
