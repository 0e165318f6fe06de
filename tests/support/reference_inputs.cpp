#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "tests/support/reference.h"

namespace sluice::test {
namespace {

// Whole numbers up to this magnitude are all elements of the type.
int whole_limit(DataType type) {
  switch (type) {
    case DataType::float8_e5m2: return 8;
    case DataType::float8_e4m3: return 16;
    case DataType::bfloat16: return 256;
    case DataType::float16: return 2048;
    default: return 1 << 20;
  }
}

std::uint64_t draw(std::uint64_t seed, int rank, std::size_t index) {
  return mix64(mix64(mix64(seed) + static_cast<std::uint64_t>(rank)) + index);
}

// Partial sums of any ranks stay within the limit: if there are too many ranks, only some hold more than zero.
double small_whole(DataType type, int ranks, int rank, std::size_t index, std::uint64_t seed) {
  const int limit = whole_limit(type);
  const int every = (ranks + limit - 1) / limit;
  if ((static_cast<std::size_t>(rank) + index) % static_cast<std::size_t>(every) != 0) return 0;
  const int most = std::clamp(limit / ranks, 1, 100);
  return static_cast<double>(draw(seed, rank, index) % static_cast<std::uint64_t>(2 * most + 1)) - most;
}

// 1 or -1, but 2 at one rank and 1/2 at another.
double power_of_two(int ranks, int rank, std::size_t index, std::uint64_t seed) {
  const int at = static_cast<int>(draw(seed, -1, index) % static_cast<std::uint64_t>(ranks));
  const double sign = draw(seed, rank, index) % 2 == 0 ? 1 : -1;
  if (rank == at) return sign * 2;
  return rank == (at + 1) % ranks ? sign / 2 : sign;
}

void put_any_bits(std::byte* to, std::size_t bytes, std::uint64_t bits) { std::memcpy(to, &bits, bytes); }

void put_any_finite(DataType type, std::byte* to, std::uint64_t bits) {
  do {
    bits = mix64(bits);
    put_any_bits(to, element_bytes(type), bits);
  } while (!std::isfinite(decode(type, to)));
}

void put_whole_input(DataType type, ReduceOp op, int ranks, int rank, std::size_t index, std::uint64_t seed,
                     std::byte* to) {
  const bool orders = op == ReduceOp::min || op == ReduceOp::max;
  if (!is_float(type))
    put_any_bits(to, element_bytes(type), draw(seed, rank, index));
  else if (orders)
    put_any_finite(type, to, draw(seed, rank, index));
  else if (op == ReduceOp::prod)
    encode(type, power_of_two(ranks, rank, index, seed), to);
  else
    encode(type, small_whole(type, ranks, rank, index, seed), to);
}

// Exponents of the large number and of the small ones: further apart than the accumulator's mantissa.
struct Spread {
  int large;
  int small;
};
Spread spread_of(DataType type) {
  switch (type) {
    case DataType::float64: return {60, 0};
    case DataType::float16: return {14, -13};
    case DataType::float8_e5m2: return {14, -13};
    case DataType::float8_e4m3: return {8, -6};
    default: return {30, 0};
  }
}

void put_order_sensitive(DataType type, int ranks, int rank, std::size_t index, std::uint64_t seed, std::byte* to) {
  const std::uint64_t bits = draw(seed, rank, index);
  if (!is_float(type)) return put_any_bits(to, element_bytes(type), bits);
  const auto bound = static_cast<std::uint64_t>(ranks);
  const int up = static_cast<int>(draw(seed, -1, index) % bound);
  const int down = static_cast<int>(
      (static_cast<std::uint64_t>(up) + 1 + draw(seed, -2, index) % std::max<std::uint64_t>(bound - 1, 1)) % bound);
  const Spread spread = spread_of(type);
  const double small = std::ldexp(1 + static_cast<double>(bits >> 12) * 0x1p-52, spread.small);
  if (rank == up)
    encode(type, std::ldexp(1.0, spread.large), to);
  else if (rank == down)
    encode(type, -std::ldexp(1.0, spread.large), to);
  else
    encode(type, bits % 2 == 0 ? small : -small, to);
}

template <typename Put>
std::vector<Bytes> for_each_value(DataType type, int ranks, std::size_t count, Put put) {
  std::vector<Bytes> inputs(static_cast<std::size_t>(ranks), Bytes(count * element_bytes(type)));
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t i = 0; i < count; ++i)
      put(rank, i, inputs[static_cast<std::size_t>(rank)].data() + i * element_bytes(type));
  return inputs;
}

}  // namespace

std::vector<Bytes> whole_inputs(DataType type, ReduceOp op, int ranks, std::size_t count, std::uint64_t seed) {
  return for_each_value(type, ranks, count, [&](int rank, std::size_t i, std::byte* to) {
    put_whole_input(type, op, ranks, rank, i, seed, to);
  });
}

std::vector<Bytes> order_sensitive_inputs(DataType type, int ranks, std::size_t count, std::uint64_t seed) {
  return for_each_value(type, ranks, count, [&](int rank, std::size_t i, std::byte* to) {
    put_order_sensitive(type, ranks, rank, i, seed, to);
  });
}

}  // namespace sluice::test
