// Compiled once per instruction set; SLUICE_KERNELS is the set's name. Everything here has internal linkage but the
// one table, and nothing is taken from the standard library but types: an inline function shared with the rest of
// the program might be kept in the copy that an older processor can't run.
#include "device/cpu/kernels.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "device/cpu/convert.h"
#include "device/cpu/kernel_memory.h"

// Iterations touch only values of their own index, also when an output is an input: no check for overlap is needed.
#if defined(__clang__)
#define SLUICE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define SLUICE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace sluice {
namespace {

// Unsigned twin, in which arithmetic wraps; at least as wide as int, so that nothing is promoted to a signed type.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

// A group of float32 that some processors convert to and from float16 at once; operators act on each.
constexpr std::size_t kGroup = 8;
typedef float Floats __attribute__((vector_size(kGroup * sizeof(float))));
typedef std::int32_t FloatsBits __attribute__((vector_size(kGroup * sizeof(float))));

template <typename T>
constexpr bool kFloating = std::is_floating_point_v<T> || std::is_same_v<T, Floats>;

template <typename T>
using BitsOf = std::conditional_t<std::is_same_v<T, Floats>, FloatsBits,
                                  std::conditional_t<std::is_same_v<T, float>, std::int32_t, std::int64_t>>;

template <typename To, typename From>
To same_bits(From from) {
  if constexpr (std::is_arithmetic_v<From>)
    return __builtin_bit_cast(To, from);
  else
    return reinterpret_cast<To>(from);
}

template <typename T>
T quiet(T value) {
  T nan{};
  if constexpr (std::is_same_v<T, double>)
    nan += __builtin_nan("");
  else
    nan += __builtin_nanf("");
  // NOLINTNEXTLINE(misc-redundant-expression): a NaN differs from itself
  return value == value ? value : nan;
}

// Zeros of both signs compare equal; the lesser is the one that has the sign bit.
template <typename T>
T either_bit(T a, T b) {
  return same_bits<T>(same_bits<BitsOf<T>>(a) | same_bits<BitsOf<T>>(b));
}
template <typename T>
T both_bits(T a, T b) {
  return same_bits<T>(same_bits<BitsOf<T>>(a) & same_bits<BitsOf<T>>(b));
}

struct Sum {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (kFloating<T>)
      return quiet(a + b);
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};

struct Prod {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (kFloating<T>)
      return quiet(a * b);
    else
      return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};

struct Min {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (kFloating<T>) {
      const T lesser = a < b ? a : b;
      const T ordered = a == b ? either_bit(a, b) : lesser;
      // NOLINTNEXTLINE(misc-redundant-expression): a NaN differs from itself
      return quiet(a == a ? ordered : a);
    } else {
      return a < b ? a : b;
    }
  }
};

struct Max {
  template <typename T>
  static T apply(T a, T b) {
    if constexpr (kFloating<T>) {
      const T greater = a > b ? a : b;
      const T ordered = a == b ? both_bits(a, b) : greater;
      // NOLINTNEXTLINE(misc-redundant-expression): a NaN differs from itself
      return quiet(a == a ? ordered : a);
    } else {
      return a > b ? a : b;
    }
  }
};

struct Band {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Bor {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Bxor {
  template <typename T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

// --- loops of elements and values: one after another, or in groups where the processor converts a group at once ---

template <typename Out, typename Left, typename Right, typename Op>
void fold_each(std::byte* out, const std::byte* left, const std::byte* right, std::size_t count) {
  SLUICE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = Left::widen(load<typename Left::Stored>(left, i));
    const auto b = Right::widen(load<typename Right::Stored>(right, i));
    store(out, i, Out::narrow(Op::apply(a, b)));
  }
}

template <typename Format>
void widen_each(std::byte* out, const std::byte* in, std::size_t count) {
  SLUICE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) store(out, i, Format::widen(load<typename Format::Stored>(in, i)));
}

template <typename Format>
void narrow_each(std::byte* out, const std::byte* in, std::size_t count) {
  SLUICE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) store(out, i, Format::narrow(load<typename Format::Value>(in, i)));
}

#if defined(__F16C__)
constexpr bool kConvertsFloat16 = true;

template <typename Format>
Floats load_group(const std::byte* from) {
  if constexpr (!std::is_same_v<Format, Float16>) return load<Floats>(from, 0);
  Floats group = _mm256_cvtph_ps(load<__m128i>(from, 0));
  __asm__("" : "+x"(group));  // or clang compares the float16 values instead, one by one
  return group;
}

// `group` holds no NaN but the quiet one, whose conversion is the quiet one of float16.
template <typename Format>
void store_group(std::byte* to, Floats group) {
  if constexpr (std::is_same_v<Format, Float16>)
    store(to, 0, _mm256_cvtps_ph(group, _MM_FROUND_TO_NEAREST_INT));
  else
    store(to, 0, group);
}

// Each returns how many values it handled: all but the last group's rest.
template <typename Out, typename Left, typename Right, typename Op>
std::size_t fold_groups(std::byte* out, const std::byte* left, const std::byte* right, std::size_t count) {
  std::size_t first = 0;
  for (; first + kGroup <= count; first += kGroup) {
    const Floats a = load_group<Left>(left + first * sizeof(typename Left::Stored));
    const Floats b = load_group<Right>(right + first * sizeof(typename Right::Stored));
    store_group<Out>(out + first * sizeof(typename Out::Stored), Op::apply(a, b));
  }
  return first;
}

template <typename Out, typename In>
std::size_t convert_groups(std::byte* out, const std::byte* in, std::size_t count) {
  std::size_t first = 0;
  for (; first + kGroup <= count; first += kGroup) {
    const Floats group = load_group<In>(in + first * sizeof(typename In::Stored));
    store_group<Out>(out + first * sizeof(typename Out::Stored), std::is_same_v<Out, Float16> ? quiet(group) : group);
  }
  return first;
}
#else
constexpr bool kConvertsFloat16 = false;
#endif

#if defined(__AVX2__)
constexpr bool kPairsBFloat16 = true;

// Two groups lie side by side: each half of a register gives one, and their upper halves packed together are in order again.
inline Floats widened_low(__m256i stored) {
  return reinterpret_cast<Floats>(_mm256_unpacklo_epi16(_mm256_setzero_si256(), stored));
}
inline Floats widened_high(__m256i stored) {
  return reinterpret_cast<Floats>(_mm256_unpackhi_epi16(_mm256_setzero_si256(), stored));
}

// To nearest even; `group` holds no NaN but the quiet one, which stays itself.
inline __m256i rounded(Floats group) {
  const __m256i bits = reinterpret_cast<__m256i>(group);
  const __m256i minus_odd = _mm256_srai_epi32(_mm256_slli_epi32(bits, 15), 31);
  return _mm256_srli_epi32(_mm256_sub_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), minus_odd), 16);
}

template <typename Op>
std::size_t fold_bfloat16(std::byte* out, const std::byte* left, const std::byte* right, std::size_t count) {
  std::size_t first = 0;
  for (; first + 2 * kGroup <= count; first += 2 * kGroup) {
    const auto a = load<__m256i>(left + first * sizeof(BFloat16::Stored), 0);
    const auto b = load<__m256i>(right + first * sizeof(BFloat16::Stored), 0);
    const Floats low = Op::apply(widened_low(a), widened_low(b));
    const Floats high = Op::apply(widened_high(a), widened_high(b));
    store(out + first * sizeof(BFloat16::Stored), 0, _mm256_packus_epi32(rounded(low), rounded(high)));
  }
  return first;
}
#else
constexpr bool kPairsBFloat16 = false;
#endif

template <typename Out, typename Left, typename Right, typename Op>
void fold(std::byte* out, const std::byte* left, const std::byte* right, std::size_t count) {
  std::size_t done = 0;
  constexpr bool kBFloat16 =
      std::is_same_v<Out, BFloat16> && std::is_same_v<Left, BFloat16> && std::is_same_v<Right, BFloat16>;
  if constexpr (kPairsBFloat16 && kBFloat16) done = fold_bfloat16<Op>(out, left, right, count);
  if constexpr (kConvertsFloat16 && (std::is_same_v<Out, Float16> || std::is_same_v<Right, Float16>))
    done = fold_groups<Out, Left, Right, Op>(out, left, right, count);
  fold_each<Out, Left, Right, Op>(out + done * sizeof(typename Out::Stored),
                                  left + done * sizeof(typename Left::Stored),
                                  right + done * sizeof(typename Right::Stored), count - done);
}

template <typename Format>
void widen(std::byte* out, const std::byte* in, std::size_t count) {
  std::size_t done = 0;
  if constexpr (kConvertsFloat16 && std::is_same_v<Format, Float16>)
    done = convert_groups<Plain<float>, Format>(out, in, count);
  widen_each<Format>(out + done * sizeof(float), in + done * sizeof(typename Format::Stored), count - done);
}

template <typename Format>
void narrow(std::byte* out, const std::byte* in, std::size_t count) {
  std::size_t done = 0;
  if constexpr (kConvertsFloat16 && std::is_same_v<Format, Float16>)
    done = convert_groups<Format, Plain<float>>(out, in, count);
  narrow_each<Format>(out + done * sizeof(typename Format::Stored), in + done * sizeof(float), count - done);
}

template <typename T>
void quiet_all(std::byte* out, const std::byte* in, std::size_t count) {
  SLUICE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) store(out, i, quiet(load<T>(in, i)));
}

// Towards zero, saturated; NaN gives 0.
template <typename T>
T converted(double operand) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(operand);
  } else {
    constexpr int kDigits = static_cast<int>(sizeof(T)) * 8 - (std::is_signed_v<T> ? 1 : 0);
    constexpr T kMost = static_cast<T>(~std::uint64_t{0} >> (64 - kDigits));
    constexpr T kLeast = std::is_signed_v<T> ? static_cast<T>(-kMost - 1) : T{0};
    constexpr double kAbove = static_cast<double>(std::uint64_t{1} << (kDigits - 1)) * 2;
    if (operand >= kAbove) return kMost;
    if (operand <= static_cast<double>(kLeast)) return kLeast;
    return operand == operand ? static_cast<T>(operand) : T{0};
  }
}

template <typename T>
void multiply(std::byte* out, const std::byte* in, double operand, std::size_t count) {
  const T factor = converted<T>(operand);
  SLUICE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) store(out, i, Prod::apply(load<T>(in, i), factor));
}

// Integers of up to 32 bits through double: a quotient that is no whole number is further from the next one than
// half a unit in the last place, so truncating the rounded quotient truncates the true one.
template <typename T>
void divide(std::byte* out, const std::byte* in, double operand, std::size_t count) {
  using Domain = std::conditional_t<std::is_integral_v<T> && sizeof(T) < 8, double, T>;
  const Domain divisor = static_cast<Domain>(operand);
  SLUICE_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) store(out, i, static_cast<T>(static_cast<Domain>(load<T>(in, i)) / divisor));
}

template <typename Out, typename Left, typename Right>
constexpr Folds folds() {
  Folds all{};
  const auto set = [&all](ReduceOp op, Fold function) { all[static_cast<std::size_t>(op)] = function; };
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::premulsum}) set(op, &fold<Out, Left, Right, Sum>);
  set(ReduceOp::prod, &fold<Out, Left, Right, Prod>);
  set(ReduceOp::max, &fold<Out, Left, Right, Max>);
  set(ReduceOp::min, &fold<Out, Left, Right, Min>);
  if constexpr (std::is_integral_v<typename Out::Stored> && std::is_same_v<typename Out::Stored, typename Out::Value>) {
    set(ReduceOp::band, &fold<Out, Left, Right, Band>);
    set(ReduceOp::bor, &fold<Out, Left, Right, Bor>);
    set(ReduceOp::bxor, &fold<Out, Left, Right, Bxor>);
  }
  return all;
}

template <typename Format>
constexpr TypeKernels kernels_of() {
  using Value = typename Format::Value;
  TypeKernels one;
  one.multiply = &multiply<Value>;
  one.divide = &divide<Value>;
  if constexpr (std::is_floating_point_v<Value>) one.quiet = &quiet_all<Value>;
  if constexpr (!std::is_same_v<Value, typename Format::Stored>) {
    one.widen = &widen<Format>;
    one.narrow = &narrow<Format>;
  }
  one.fold = folds<Plain<Value>, Plain<Value>, Plain<Value>>();
  one.fold_element = folds<Plain<Value>, Plain<Value>, Format>();
  one.fold_elements = folds<Format, Format, Format>();
  return one;
}

constexpr std::array<TypeKernels, kDataTypes> all_types() {
  std::array<TypeKernels, kDataTypes> all{};
  const auto set = [&all](DataType type, const TypeKernels& one) { all[static_cast<std::size_t>(type)] = one; };
  set(DataType::int8, kernels_of<Plain<std::int8_t>>());
  set(DataType::uint8, kernels_of<Plain<std::uint8_t>>());
  set(DataType::int32, kernels_of<Plain<std::int32_t>>());
  set(DataType::uint32, kernels_of<Plain<std::uint32_t>>());
  set(DataType::int64, kernels_of<Plain<std::int64_t>>());
  set(DataType::uint64, kernels_of<Plain<std::uint64_t>>());
  set(DataType::float16, kernels_of<Float16>());
  set(DataType::float32, kernels_of<Plain<float>>());
  set(DataType::float64, kernels_of<Plain<double>>());
  set(DataType::bfloat16, kernels_of<BFloat16>());
  set(DataType::float8_e4m3, kernels_of<Float8E4m3>());
  set(DataType::float8_e5m2, kernels_of<Float8E5m2>());
  return all;
}

}  // namespace

#define SLUICE_QUOTED2(word) #word
#define SLUICE_QUOTED(word) SLUICE_QUOTED2(word)
namespace SLUICE_KERNELS {
extern const Kernels kernels;
constinit const Kernels kernels{SLUICE_QUOTED(SLUICE_KERNELS), &copy_lines<store_line>, &copy_lines<stream_line>,
                                all_types()};
}  // namespace SLUICE_KERNELS

}  // namespace sluice
