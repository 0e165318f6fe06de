#include "tests/support/reference.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace sluice::test {
namespace {

__extension__ typedef __int128 Whole;
__extension__ typedef unsigned __int128 UnsignedWhole;

// A value of either kind: `real` for floats, `whole` for integers.
struct Number {
  double real = 0;
  Whole whole = 0;
};

bool is_signed(DataType type) { return type == DataType::int8 || type == DataType::int32 || type == DataType::int64; }

// --- formats of floats --------------------------------------------------------------------------

struct SmallFormat {
  int exponent_bits;
  int mantissa_bits;
  bool infinity;
};

bool small_format(DataType type, SmallFormat& format) {
  switch (type) {
    case DataType::float16: format = {5, 10, true}; return true;
    case DataType::bfloat16: format = {8, 7, true}; return true;
    case DataType::float8_e5m2: format = {5, 2, true}; return true;
    case DataType::float8_e4m3: format = {4, 3, false}; return true;
    default: return false;
  }
}

// The value of a code by the definition of its fields.
double value_of(const SmallFormat& format, unsigned code) {
  const int bias = (1 << (format.exponent_bits - 1)) - 1;
  const unsigned sign = code >> (format.exponent_bits + format.mantissa_bits);
  const unsigned exponent = (code >> format.mantissa_bits) & ((1u << format.exponent_bits) - 1);
  const unsigned mantissa = code & ((1u << format.mantissa_bits) - 1);
  const bool top = exponent == (1u << format.exponent_bits) - 1;
  double value = 0;
  if (top && format.infinity) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity() : std::nan("");
  } else if (top && mantissa == (1u << format.mantissa_bits) - 1) {
    value = std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - format.mantissa_bits);
  } else {
    value =
        std::ldexp((1u << format.mantissa_bits) + mantissa, static_cast<int>(exponent) - bias - format.mantissa_bits);
  }
  return sign != 0 ? -value : value;
}

// Every value from 0 to the largest finite one, in order; the index of each is its code.
std::vector<double> list_of_values(const SmallFormat& format) {
  std::vector<double> values;
  for (unsigned code = 0; std::isfinite(value_of(format, code)); ++code) values.push_back(value_of(format, code));
  return values;
}

const std::vector<double>& values_of(DataType type) {
  static const auto lists = [] {
    std::vector<std::vector<double>> all(kDataTypes);
    SmallFormat format{};
    for (const DataType one : all_data_types())
      if (small_format(one, format)) all[static_cast<std::size_t>(one)] = list_of_values(format);
    return all;
  }();
  return lists[static_cast<std::size_t>(type)];
}

// The code without sign of the value in the list nearest to `magnitude`; the even one of two equally near.
unsigned nearest_code(const std::vector<double>& values, double magnitude, bool infinity) {
  const unsigned last = static_cast<unsigned>(values.size() - 1);
  const double step = values[last] - values[last - 1];
  if (magnitude >= values[last] + step / 2) return infinity ? last + 1 : last;
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.end()) return last;
  const unsigned high = static_cast<unsigned>(above - values.begin());
  if (*above == magnitude) return high;
  const double up = values[high] - magnitude;
  const double down = magnitude - values[high - 1];
  if (up == down) return high % 2 == 0 ? high : high - 1;
  return up < down ? high : high - 1;
}

unsigned small_code(DataType type, const SmallFormat& format, double value) {
  const int width = format.exponent_bits + format.mantissa_bits;
  const std::vector<double>& values = values_of(type);
  if (std::isnan(value))  // one quiet NaN: the highest mantissa bit, or the only NaN there is
    return format.infinity ? static_cast<unsigned>(values.size()) | (1u << (format.mantissa_bits - 1))
                           : (1u << width) - 1;
  const unsigned sign = std::signbit(value) ? 1u << width : 0;
  return sign | nearest_code(values, std::fabs(value), format.infinity);
}

template <typename T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// --- arithmetic ----------------------------------------------------------------------------------

// An accumulator of the type, rounded or wrapped to what it can hold. Products and sums of two float32 values round
// the same through double (53 >= 2*24 + 2 bits).
Number held(DataType type, Number number) {
  if (is_float(type)) {
    if (type != DataType::float64) number.real = static_cast<double>(static_cast<float>(number.real));
    return number;
  }
  const int bits = static_cast<int>(element_bytes(type)) * 8;
  const Whole modulus = Whole{1} << bits;
  number.whole = ((number.whole % modulus) + modulus) % modulus;
  if (is_signed(type) && number.whole >= modulus / 2) number.whole -= modulus;
  return number;
}

// Of two numbers of up to 64 bits: modulo 2^128, which is all that wrapping them later needs.
Whole product(Whole a, Whole b) {
  return static_cast<Whole>(static_cast<UnsignedWhole>(a) * static_cast<UnsignedWhole>(b));
}

double least(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::nan("");
  if (a == 0 && b == 0) return std::signbit(a) ? a : b;
  return b < a ? b : a;
}

Number applied(DataType type, ReduceOp op, Number a, Number b) {
  Number out;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premulsum: out = {a.real + b.real, a.whole + b.whole}; break;
    case ReduceOp::prod: out = {a.real * b.real, product(a.whole, b.whole)}; break;
    case ReduceOp::min: out = {least(a.real, b.real), a.whole < b.whole ? a.whole : b.whole}; break;
    case ReduceOp::max: out = {-least(-a.real, -b.real), a.whole > b.whole ? a.whole : b.whole}; break;
    case ReduceOp::band: out.whole = a.whole & b.whole; break;
    case ReduceOp::bor: out.whole = a.whole | b.whole; break;
    case ReduceOp::bxor: out.whole = a.whole ^ b.whole; break;
  }
  return held(type, out);
}

Whole saturated(DataType type, double factor) {
  const int bits = static_cast<int>(element_bytes(type)) * 8 - (is_signed(type) ? 1 : 0);
  const Whole most = (Whole{1} << bits) - 1;
  const Whole lowest = is_signed(type) ? -most - 1 : Whole{0};
  if (std::isnan(factor)) return 0;
  if (factor >= std::ldexp(1.0, 100)) return most;
  if (factor <= -std::ldexp(1.0, 100)) return lowest;
  return std::clamp(static_cast<Whole>(factor), lowest, most);
}

Number multiplied(DataType type, double factor, Number value) {
  const Number by = is_float(type) ? held(type, {factor, 0}) : Number{0, saturated(type, factor)};
  return held(type, {value.real * by.real, product(value.whole, by.whole)});
}

Number divided(DataType type, int ranks, Number value) { return held(type, {value.real / ranks, value.whole / ranks}); }

Number folded(DataType type, ReduceOp op, Tree tree, const std::vector<Number>& values, std::size_t begin,
              std::size_t end) {
  const std::size_t n = end - begin;
  if (n == 1) return values[begin];
  std::size_t split = n - 1;  // a chain: all but the last, then the last
  if (tree == Tree::canonical)
    for (split = 1; split * 2 < n;) split *= 2;
  return applied(type, op, folded(type, op, tree, values, begin, begin + split),
                 folded(type, op, tree, values, begin + split, end));
}

// --- memory ---------------------------------------------------------------------------------------

DataType stored_type(DataType type, Form form) {
  return form == Form::accumulator && is_float(type) && type != DataType::float64 ? DataType::float32 : type;
}

Number read_number(DataType type, const std::byte* from) {
  Number number;
  if (is_float(type))
    number.real = decode(type, from);
  else if (type == DataType::int8)
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): the sign is meant
    number.whole = read<std::int8_t>(from);
  else if (type == DataType::uint8)
    number.whole = read<std::uint8_t>(from);
  else if (type == DataType::int32)
    number.whole = read<std::int32_t>(from);
  else if (type == DataType::uint32)
    number.whole = read<std::uint32_t>(from);
  else if (type == DataType::int64)
    number.whole = read<std::int64_t>(from);
  else
    number.whole = read<std::uint64_t>(from);
  return number;
}

void put_number(DataType type, Number number, std::byte* to) {
  if (is_float(type))
    encode(type, number.real, to);
  else
    std::memcpy(to, &number.whole, element_bytes(type));  // little endian: the low bytes come first
}

bool changes_nothing(const CombineRule& rule, const std::vector<ReferenceSource>& sources, Form to) {
  const bool multiplies = sources[0].leaf && rule.reduction.op == ReduceOp::premulsum;
  const bool divides = rule.final && rule.reduction.op == ReduceOp::avg;
  const bool quiets = rule.final && rule.canonical_nan;
  return sources.size() == 1 && stored_type(rule.type, sources[0].form) == stored_type(rule.type, to) && !multiplies &&
         !divides && !quiets;
}

}  // namespace

double decode(DataType type, const std::byte* element) {
  SmallFormat format{};
  if (type == DataType::float64) return read<double>(element);
  if (type == DataType::float32) return static_cast<double>(read<float>(element));
  if (!small_format(type, format)) return std::nan("");
  return value_of(format, element_bytes(type) == 1 ? read<std::uint8_t>(element) : read<std::uint16_t>(element));
}

void encode(DataType type, double value, std::byte* element) {
  SmallFormat format{};
  if (std::isnan(value)) value = std::nan("");
  if (type == DataType::float64)
    put(element, value);
  else if (type == DataType::float32)
    put(element, static_cast<float>(value));
  else if (!small_format(type, format))
    std::abort();
  else if (element_bytes(type) == 1)
    put(element, static_cast<std::uint8_t>(small_code(type, format, value)));
  else
    put(element, static_cast<std::uint16_t>(small_code(type, format, value)));
}

Bytes combine(const CombineRule& rule, const std::vector<ReferenceSource>& sources, Form to) {
  if (changes_nothing(rule, sources, to)) return sources[0].bytes;
  const ReduceOp op = rule.reduction.op;
  const DataType to_type = stored_type(rule.type, to);
  const std::size_t count = sources[0].bytes.size() / element_bytes(stored_type(rule.type, sources[0].form));
  Bytes out(count * element_bytes(to_type));
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<Number> values;
    for (const ReferenceSource& source : sources) {
      const DataType type = stored_type(rule.type, source.form);
      values.push_back(read_number(type, source.bytes.data() + i * element_bytes(type)));
      if (source.leaf && op == ReduceOp::premulsum)
        values.back() = multiplied(rule.type, rule.reduction.factor, values.back());
    }
    Number result = folded(rule.type, op, rule.tree, values, 0, values.size());
    if (rule.final && op == ReduceOp::avg) result = divided(rule.type, rule.ranks, result);
    put_number(to_type, result, out.data() + i * element_bytes(to_type));
  }
  return out;
}

Bytes reduce(const std::vector<Bytes>& inputs, DataType type, const Reduction& reduction, Tree tree) {
  CombineRule rule{type,
                   reduction,
                   tree,
                   /*final=*/true,
                   static_cast<int>(inputs.size()),
                   /*canonical_nan=*/tree == Tree::canonical};
  std::vector<ReferenceSource> sources;
  for (const Bytes& input : inputs) sources.push_back({input, Form::element, /*leaf=*/true});
  return combine(rule, sources, Form::element);
}

std::ptrdiff_t first_difference(DataType type, const Bytes& got, const Bytes& want, bool exact) {
  const std::size_t bytes = element_bytes(type);
  if (got.size() != want.size()) return 0;
  for (std::size_t at = 0; at < want.size(); at += bytes) {
    if (std::memcmp(got.data() + at, want.data() + at, bytes) == 0) continue;
    const bool both_nan =
        is_float(type) && std::isnan(decode(type, got.data() + at)) && std::isnan(decode(type, want.data() + at));
    if (exact || !both_nan) return static_cast<std::ptrdiff_t>(at / bytes);
  }
  return -1;
}

}  // namespace sluice::test
