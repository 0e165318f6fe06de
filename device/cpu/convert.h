// Floats of 8 and 16 bits to and from float32: without branches and tables, so that loops over them vectorise.
//
//   Rounds   to nearest even. Overflow goes to infinity, or to the largest finite value in a format without one.
//   NaN      every NaN that is narrowed becomes the format's one quiet NaN (positive, payload zero).
//   Source   the bit layouts of IEEE 754-2019 (binary16), of bfloat16 (the upper half of binary32), and of
//            "OCP 8-bit Floating Point Specification", rev. 1.0, 2023 (E5M2; E4M3 has no infinity, NaN is 0x7f).
//
// Internal linkage on purpose: this is compiled once per instruction set, and the linker must not take one
// set's copy for another's.
#pragma once

#include <cstdint>

namespace sluice {
namespace {

inline std::int32_t bits_of(float value) { return __builtin_bit_cast(std::int32_t, value); }
inline float float_of(std::int32_t bits) { return __builtin_bit_cast(float, bits); }
inline std::int32_t mask(bool all) { return -static_cast<std::int32_t>(all); }

// How a format spends its bits besides the sign. `finite_only`: no infinity, NaN is the one largest encoding.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool finite_only;
};
inline constexpr FloatFormat kFloat16{5, 10, false};
inline constexpr FloatFormat kFloat8E4m3{4, 3, true};
inline constexpr FloatFormat kFloat8E5m2{5, 2, false};

template <FloatFormat kFormat, typename StoredType>
struct SmallFloat {
  using Stored = StoredType;
  using Value = float;

  static constexpr int kMantissa = kFormat.mantissa_bits;
  static constexpr int kWidth = kFormat.exponent_bits + kMantissa;  // all but the sign
  static constexpr int kBias = (1 << (kFormat.exponent_bits - 1)) - 1;
  static constexpr int kShift = 23 - kMantissa;
  static constexpr std::int32_t kMagnitudes = (1 << kWidth) - 1;
  static constexpr std::int32_t kInfinity = ((1 << kFormat.exponent_bits) - 1) << kMantissa;
  static constexpr std::int32_t kNan = kFormat.finite_only ? kMagnitudes : kInfinity | (1 << (kMantissa - 1));
  static constexpr std::int32_t kLargest = kFormat.finite_only ? kMagnitudes - 1 : kInfinity;  // what overflow gives
  static constexpr std::int32_t kRebias = (127 - kBias) << 23;
  static constexpr std::int32_t kSmallestNormal = (128 - kBias) << 23;  // as float32 bits
  // A power of two whose unit in the last place is the format's smallest value, and that smallest value.
  static constexpr std::int32_t kAligner = (127 + 24 - kBias - kMantissa) << 23;
  static constexpr std::int32_t kSmallest = (127 + 1 - kBias - kMantissa) << 23;

  static float widen(Stored stored) {
    const std::int32_t magnitude = stored & kMagnitudes;
    const std::int32_t sign = static_cast<std::int32_t>(static_cast<std::uint32_t>(stored >> kWidth) << 31);
    const std::int32_t normal = (magnitude << kShift) + kRebias;
    const std::int32_t subnormal = bits_of(static_cast<float>(magnitude) * float_of(kSmallest));
    // By masks: a compiler may make branches of what is chosen after a choice.
    const std::int32_t finite = normal ^ ((normal ^ subnormal) & mask(magnitude < (1 << kMantissa)));
    const std::int32_t infinite = mask(magnitude >= (kFormat.finite_only ? kNan : kInfinity)) & 0x7f800000;
    const std::int32_t quiet = mask(magnitude > (kFormat.finite_only ? kNan - 1 : kInfinity)) & 0x00400000;
    return float_of(sign | finite | infinite | quiet);
  }

  static Stored narrow(float value) {
    const std::int32_t magnitude = bits_of(value) & 0x7fffffff;
    const std::int32_t sign = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits_of(value)) >> 31) << kWidth;
    const std::int32_t odd = (magnitude >> kShift) & 1;
    const std::int32_t clamped = magnitude < 0x7f800000 ? magnitude : 0x7f800000;  // so that the sum can't overflow
    const std::int32_t normal = (clamped - kRebias + ((1 << (kShift - 1)) - 1) + odd) >> kShift;
    const std::int32_t subnormal = bits_of(float_of(magnitude) + float_of(kAligner)) - kAligner;
    const std::int32_t rounded = magnitude < kSmallestNormal ? subnormal : normal;
    const std::int32_t limited = rounded < kLargest ? rounded : kLargest;
    return static_cast<Stored>(magnitude > 0x7f800000 ? kNan : sign | limited);
  }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  using Value = float;

  static float widen(Stored stored) {
    return float_of(static_cast<std::int32_t>(static_cast<std::uint32_t>(stored) << 16));
  }
  static Stored narrow(float value) {
    const std::uint32_t bits = static_cast<std::uint32_t>(bits_of(value));
    const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return static_cast<Stored>((bits_of(value) & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
  }
};

using Float16 = SmallFloat<kFloat16, std::uint16_t>;
using Float8E4m3 = SmallFloat<kFloat8E4m3, std::uint8_t>;
using Float8E5m2 = SmallFloat<kFloat8E5m2, std::uint8_t>;

// A type that is its own accumulator.
template <typename T>
struct Plain {
  using Stored = T;
  using Value = T;
  static T widen(T stored) { return stored; }
  static T narrow(T value) { return value; }
};

}  // namespace
}  // namespace sluice
