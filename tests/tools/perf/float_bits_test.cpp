// Every bit pattern of the small formats, and the compiler's own arithmetic for the large ones.
#include "tools/perf/float_bits.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/rng.h"

namespace sluice::tools {
namespace {

const DataType kSmall[] = {DataType::float8_e4m3, DataType::float8_e5m2, DataType::float16, DataType::bfloat16};

TEST(FloatBits, EveryNumberOfASmallFormatRoundsToItself) {
  for (const DataType type : kSmall) {
    const FloatFormat format = float_format(type);
    for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << format.total_bits()); ++bits) {
      if (is_nan_bits(format, bits)) continue;
      EXPECT_EQ(float_bits_rounded(format, float_value(format, bits)), bits) << name(type) << " " << bits;
    }
  }
}

TEST(FloatBits, KnownValues) {
  const FloatFormat e4m3 = float_format(DataType::float8_e4m3);
  EXPECT_EQ(float_value(e4m3, 0x7e), 448);
  EXPECT_EQ(float_value(e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(float_bits_rounded(e4m3, 1e9), 0x7e);  // no infinity: the largest
  EXPECT_EQ(float_bits_rounded(e4m3, -1e9), 0xfe);
  EXPECT_TRUE(is_nan_bits(e4m3, 0x7f));
  const FloatFormat half = float_format(DataType::float16);
  EXPECT_EQ(float_bits_rounded(half, 65519.9), 0x7bff);
  EXPECT_EQ(float_bits_rounded(half, 65520), 0x7c00);  // half way goes to infinity
  EXPECT_EQ(float_value(half, 0x3c00), 1);
  EXPECT_EQ(float_bits_rounded(float_format(DataType::bfloat16), 1.0), 0x3f80);
}

TEST(FloatBits, RoundsAsTheCompilerDoes) {
  Rng rng(7);
  const FloatFormat single = float_format(DataType::float32);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<std::uint32_t>(rng.next());
    if (is_nan_bits(single, bits)) continue;
    const double value = static_cast<double>(std::bit_cast<float>(bits)) * (1 + 1e-9 * (rng.uniform() - 0.5));
    EXPECT_EQ(float_bits_rounded(single, value), std::bit_cast<std::uint32_t>(static_cast<float>(value))) << value;
    EXPECT_EQ(float_value(single, bits), static_cast<double>(std::bit_cast<float>(bits)));
  }
}

TEST(FloatBits, WholeNumbersTimesPowersOfTwoAreExact) {
  Rng rng(11);
  for (const DataType type : {DataType::float32, DataType::float64, DataType::float16, DataType::float8_e4m3}) {
    const FloatFormat format = float_format(type);
    for (int i = 0; i < 10000; ++i) {
      const auto most = std::int64_t{1} << (format.mantissa_bits + 1);
      const auto mantissa = static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(most) + 1)) - most;
      const int exponent = format.least_exponent() - format.mantissa_bits +
                           static_cast<int>(rng.below(static_cast<std::uint64_t>(format.bias())));
      EXPECT_EQ(float_value(format, float_bits_exact(format, mantissa, exponent)),
                std::scalbn(static_cast<double>(mantissa), exponent))
          << name(type) << " " << mantissa << " * 2^" << exponent;
    }
  }
}

TEST(FloatBits, NeighboursAreOneUlpApartAcrossZero) {
  for (const DataType type : kSmall) {
    const FloatFormat format = float_format(type);
    EXPECT_EQ(ulps_between(format, 1, format.sign_bit() | 1), 2u);
    EXPECT_EQ(ulps_between(format, 5, 6), 1u);
    EXPECT_EQ(ulps_between(format, 0, format.sign_bit()), 0u);
  }
  const FloatFormat wide = float_format(DataType::float64);
  EXPECT_EQ(ulps_between(wide, wide.largest_bits(), wide.sign_bit() | wide.largest_bits()), 2 * wide.largest_bits());
}

}  // namespace
}  // namespace sluice::tools
