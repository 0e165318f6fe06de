#include "tools/perf/float_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace sluice::tools {
namespace {

std::uint64_t magnitude(const FloatFormat& format, std::uint64_t bits) { return bits & (format.sign_bit() - 1); }

std::int64_t place_in_line(const FloatFormat& format, std::uint64_t bits) {
  const auto size = static_cast<std::int64_t>(magnitude(format, bits));
  return (bits & format.sign_bit()) != 0 ? -size : size;
}

}  // namespace

FloatFormat float_format(DataType type) {
  switch (type) {
    case DataType::float16: return {5, 10, true};
    case DataType::bfloat16: return {8, 7, true};
    case DataType::float64: return {11, 52, true};
    case DataType::float8_e4m3: return {4, 3, false};
    case DataType::float8_e5m2: return {5, 2, true};
    default: return {8, 23, true};
  }
}

std::uint64_t float_bits_exact(const FloatFormat& format, std::int64_t mantissa, int exponent) {
  if (mantissa == 0) return 0;
  const std::uint64_t sign = mantissa < 0 ? format.sign_bit() : 0;
  auto size = static_cast<std::uint64_t>(mantissa < 0 ? -mantissa : mantissa);
  const int zeros = std::countr_zero(size);
  size >>= zeros;
  exponent += zeros;
  const int width = static_cast<int>(std::bit_width(size));
  const int top = width - 1 + exponent;  // exponent of the leading one
  if (top < format.least_exponent())
    return sign | (size << (exponent - (format.least_exponent() - format.mantissa_bits)));
  const std::uint64_t fraction = size << (format.mantissa_bits - (width - 1));  // with the leading one
  const auto biased = static_cast<std::uint64_t>(top + format.bias());
  return sign | ((biased << format.mantissa_bits) + fraction - (std::uint64_t{1} << format.mantissa_bits));
}

std::uint64_t float_bits_rounded(const FloatFormat& format, double value) {
  const std::uint64_t sign = std::signbit(value) ? format.sign_bit() : 0;
  const double size = std::fabs(value);
  if (size == 0) return sign;
  if (std::isinf(size)) return sign | format.last_number_bits();
  const int top = std::max(std::ilogb(size), format.least_exponent());
  // In units of the last place it is a whole number below 2^(mantissa_bits + 1), or one more than that after rounding, which
  // carries into the exponent by itself; a value below the normal ones has no leading one to take away.
  const auto units = static_cast<std::uint64_t>(std::nearbyint(std::scalbn(size, format.mantissa_bits - top)));
  const auto biased = static_cast<std::uint64_t>(top + format.bias() - 1);
  const std::uint64_t bits = (biased << format.mantissa_bits) + units;
  return sign | (bits > format.largest_bits() ? format.last_number_bits() : bits);
}

double float_value(const FloatFormat& format, std::uint64_t bits) {
  const std::uint64_t size = magnitude(format, bits);
  const double sign = (bits & format.sign_bit()) != 0 ? -1.0 : 1.0;
  if (format.infinity && size == format.infinity_bits()) return sign * INFINITY;
  const std::uint64_t biased = size >> format.mantissa_bits;
  const std::uint64_t one = std::uint64_t{1} << format.mantissa_bits;
  const std::uint64_t fraction = (size & (one - 1)) + (biased == 0 ? 0 : one);
  const int exponent =
      (biased == 0 ? format.least_exponent() : static_cast<int>(biased) - format.bias()) - format.mantissa_bits;
  return sign * std::scalbn(static_cast<double>(fraction), exponent);
}

std::uint64_t ulps_between(const FloatFormat& format, std::uint64_t a, std::uint64_t b) {
  const std::int64_t place_a = place_in_line(format, a);
  const std::int64_t place_b = place_in_line(format, b);
  const std::uint64_t above = static_cast<std::uint64_t>(place_a) - static_cast<std::uint64_t>(place_b);
  return place_a < place_b ? 0 - above : above;
}

bool is_nan_bits(const FloatFormat& format, std::uint64_t bits) {
  return magnitude(format, bits) > format.last_number_bits();
}

}  // namespace sluice::tools
