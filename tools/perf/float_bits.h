// Floating-point formats of 8 to 64 bits, taken apart and put together by integer arithmetic: what the checks of the
// benchmark programs use instead of the kernels under test.
#pragma once

#include <cstdint>

#include "base/types.h"

namespace sluice::tools {

struct FloatFormat {
  int exponent_bits = 8;
  int mantissa_bits = 23;  // stored ones
  bool infinity = true;    // float8_e4m3 has none: its last exponent holds finite values and one NaN

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr int least_exponent() const { return 1 - bias(); }  // of normal values
  constexpr int most_exponent() const { return infinity ? bias() : bias() + 1; }
  constexpr int total_bits() const { return 1 + exponent_bits + mantissa_bits; }
  constexpr std::uint64_t sign_bit() const { return std::uint64_t{1} << (total_bits() - 1); }
  constexpr std::uint64_t infinity_bits() const { return ((std::uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  // Bits of the largest finite value, and the largest value of the bit pattern that is not NaN.
  constexpr std::uint64_t largest_bits() const { return infinity ? infinity_bits() - 1 : infinity_bits() + 6; }
  constexpr std::uint64_t last_number_bits() const { return infinity ? infinity_bits() : largest_bits(); }
};

// Only for is_float(type).
FloatFormat float_format(DataType type);

// mantissa * 2^exponent, which must be exactly representable. Zero is +0.
std::uint64_t float_bits_exact(const FloatFormat& format, std::int64_t mantissa, int exponent);

// Rounds to nearest even. Too large: infinity, or the largest finite value where there is none.
std::uint64_t float_bits_rounded(const FloatFormat& format, double value);

// The value of bits that are no NaN. Exact: every format fits into a double.
double float_value(const FloatFormat& format, std::uint64_t bits);

// Numbers of one format in one line: the distance of two values in units in the last place.
std::uint64_t ulps_between(const FloatFormat& format, std::uint64_t a, std::uint64_t b);
bool is_nan_bits(const FloatFormat& format, std::uint64_t bits);

}  // namespace sluice::tools
