#include "tools/perf/values.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/rng.h"
#include "tools/perf/float_bits.h"

namespace sluice::tools {
namespace {

constexpr std::uint64_t kElementStep = 0xd1342543de82ef95u;  // odd: indices stay apart
constexpr std::uint64_t kUlpsOfAverage = 2;
constexpr int kFactorsMax = 16;  // of an order-sensitive product, that are not 1

// Chance at one element: what all ranks share there, and each rank's own.
std::uint64_t shared_chance(const ValueRule& rule, std::size_t index) {
  return mix64(rule.seed ^ (static_cast<std::uint64_t>(index) * kElementStep));
}
std::uint64_t own_chance(std::uint64_t shared, Rank rank) {
  return mix64(shared + (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15u);
}

std::uint64_t low_bits(std::uint64_t value, std::size_t bytes) {
  return bytes == 8 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}
std::int64_t sign_extended(std::uint64_t bits, std::size_t bytes) {
  const int unused = static_cast<int>(64 - 8 * bytes);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

bool is_signed_integer(DataType type) {
  return type == DataType::int8 || type == DataType::int32 || type == DataType::int64;
}

// What is drawn at one element, constant over the run of one rule.
struct Plan {
  ValueRule rule;
  FloatFormat format;
  std::size_t bytes;
  bool floating;
  bool ordered;  // depends_on_order
  // Exact sums: at most `active` ranks are not zero, each of at most `most` in magnitude; exponents from `low` on.
  int active = 1;
  std::int64_t most = 1;
  int low = 0;
  int span = 1;
};

// A power of two 2^e with e in [low, low + span) scales exact sums; the range keeps every partial sum, and half of the least
// one (premulsum by 1/2), representable.
void plan_sum(Plan& plan, std::int64_t budget) {
  plan.active = static_cast<int>(std::min<std::int64_t>(plan.rule.ranks, budget));
  plan.most = budget / plan.active;
  if (!plan.floating) return;
  const int least = plan.format.least_exponent() - plan.format.mantissa_bits + 1;
  const int highest = plan.format.most_exponent() - plan.format.mantissa_bits - 1;
  plan.low = std::max(least, -40);
  plan.span = std::max(1, std::min(highest, 20) - plan.low);
}

void plan_product(Plan& plan) {
  // The exponents of all factors together stay within the range of normal numbers.
  const int budget = std::min(-plan.format.least_exponent(), plan.format.most_exponent() - 1);
  plan.active = std::min(plan.rule.ranks, budget);
  plan.most = budget / plan.active;
}

Plan make_plan(const ValueRule& rule) {
  Plan plan{.rule = rule,
            .format = float_format(rule.type),
            .bytes = element_bytes(rule.type),
            .floating = is_float(rule.type),
            .ordered = depends_on_order(rule)};
  const ReduceOp op = rule.reduction.op;
  if (plan.floating && op == ReduceOp::prod) plan_product(plan);
  if (plan.floating && (op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premulsum))
    plan_sum(plan, std::int64_t{1} << (plan.format.mantissa_bits + 1));
  if (!plan.floating && op == ReduceOp::avg) plan_sum(plan, plan.bytes == 1 ? 127 : 2147483647);
  return plan;
}

// Whether `rank` is one of the `active` ranks of this element.
bool takes_turn(const Plan& plan, std::uint64_t shared, Rank rank, int active) {
  if (active >= plan.rule.ranks) return true;
  const auto turn = static_cast<std::uint32_t>(shared >> 40) + static_cast<std::uint32_t>(rank);
  return static_cast<int>(turn % static_cast<std::uint32_t>(plan.rule.ranks)) < active;
}

// A whole number in [-most, most], zero for the ranks that are not active at this element.
std::int64_t draw_whole(const Plan& plan, std::uint64_t shared, Rank rank) {
  if (!takes_turn(plan, shared, rank, plan.active)) return 0;
  const std::uint64_t chance = own_chance(shared, rank);
  const auto size = static_cast<std::int64_t>((chance >> 8) % (static_cast<std::uint64_t>(plan.most) + 1));
  return (chance & 1) != 0 ? -size : size;
}

int shared_exponent(const Plan& plan, std::uint64_t shared) {
  return plan.low + static_cast<int>((shared & 0xffff) % static_cast<std::uint64_t>(plan.span));
}

// 2^k with |k| <= most, about half of them negative.
std::uint64_t draw_power(const Plan& plan, std::uint64_t shared, Rank rank) {
  const std::int64_t exponent = draw_whole(plan, shared, rank);
  const bool negative = (own_chance(shared, rank) & 2) != 0;
  return float_bits_exact(plan.format, negative ? -1 : 1, static_cast<int>(exponent));
}

// Any number of the format but -0: infinities too, where there are some.
std::uint64_t draw_number(const Plan& plan, std::uint64_t chance) {
  const std::uint64_t bits = low_bits(chance, plan.bytes);
  if (is_nan_bits(plan.format, bits) || bits == plan.format.sign_bit()) return 0;
  return bits;
}

// Random mantissas. Sums: exponents over a range of 2^6 whose top leaves room for all ranks. Products: near 1, and exactly 1
// but for kFactorsMax ranks, so that the result stays in the range of normal numbers.
std::uint64_t draw_sensitive(const Plan& plan, std::uint64_t shared, Rank rank) {
  const FloatFormat& format = plan.format;
  const std::uint64_t chance = own_chance(shared, rank);
  const double uniform = static_cast<double>(chance >> 11) * 0x1p-53;
  if (plan.rule.reduction.op == ReduceOp::prod)
    return float_bits_rounded(format, takes_turn(plan, shared, rank, kFactorsMax) ? 0.75 + 0.5 * uniform : 1);
  const int room = static_cast<int>(std::bit_width(static_cast<unsigned>(plan.rule.ranks))) + 1;
  const int top = std::min(format.most_exponent() - room, 10);
  const int exponent = std::max(top - static_cast<int>((chance & 0xff) % 7), format.least_exponent());
  const std::uint64_t bits = float_bits_rounded(format, std::scalbn(1 + uniform, exponent));
  return (chance & 0x100) != 0 ? bits | format.sign_bit() : bits;
}

std::uint64_t draw_one(const Plan& plan, std::uint64_t shared, Rank rank) {
  const ReduceOp op = plan.rule.reduction.op;
  const bool sums = op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premulsum;
  if (!plan.rule.reduces) return low_bits(own_chance(shared, rank), plan.bytes);
  if (plan.ordered) return draw_sensitive(plan, shared, rank);
  if (plan.floating && sums)
    return float_bits_exact(plan.format, draw_whole(plan, shared, rank), shared_exponent(plan, shared));
  if (plan.floating && op == ReduceOp::prod) return draw_power(plan, shared, rank);
  if (plan.floating) return draw_number(plan, own_chance(shared, rank));
  if (op == ReduceOp::avg) {
    const std::int64_t whole = draw_whole(plan, shared, rank);
    return low_bits(static_cast<std::uint64_t>(is_signed_integer(plan.rule.type) ? whole : std::abs(whole)),
                    plan.bytes);
  }
  return low_bits(own_chance(shared, rank), plan.bytes);
}

std::uint64_t reduce_exact_floats(const Plan& plan, std::uint64_t shared) {
  const ReduceOp op = plan.rule.reduction.op;
  if (op == ReduceOp::prod) {
    std::int64_t exponent = 0;
    bool negative = false;
    for (Rank rank = 0; rank < plan.rule.ranks; ++rank) {
      exponent += draw_whole(plan, shared, rank);
      negative ^= (own_chance(shared, rank) & 2) != 0;
    }
    return float_bits_exact(plan.format, negative ? -1 : 1, static_cast<int>(exponent));
  }
  std::int64_t sum = 0;
  for (Rank rank = 0; rank < plan.rule.ranks; ++rank) sum += draw_whole(plan, shared, rank);
  const int exponent = shared_exponent(plan, shared);
  if (op == ReduceOp::premulsum) return float_bits_exact(plan.format, sum, exponent - 1);  // the factor is 1/2
  if (op == ReduceOp::sum) return float_bits_exact(plan.format, sum, exponent);
  return float_bits_rounded(plan.format, std::scalbn(static_cast<double>(sum), exponent) / plan.rule.ranks);
}

std::uint64_t reduce_least_or_most(const Plan& plan, std::uint64_t shared) {
  const bool least = plan.rule.reduction.op == ReduceOp::min;
  const auto below = [&plan](std::uint64_t a, std::uint64_t b) {
    if (plan.floating) return float_value(plan.format, a) < float_value(plan.format, b);
    if (is_signed_integer(plan.rule.type)) return sign_extended(a, plan.bytes) < sign_extended(b, plan.bytes);
    return a < b;
  };
  std::uint64_t best = draw_one(plan, shared, 0);
  for (Rank rank = 1; rank < plan.rule.ranks; ++rank) {
    const std::uint64_t other = draw_one(plan, shared, rank);
    if (least ? below(other, best) : below(best, other)) best = other;
  }
  return best;
}

std::uint64_t reduce_integers(const Plan& plan, std::uint64_t shared) {
  const ReduceOp op = plan.rule.reduction.op;
  std::uint64_t value = draw_one(plan, shared, 0);
  for (Rank rank = 1; rank < plan.rule.ranks; ++rank) {
    const std::uint64_t other = draw_one(plan, shared, rank);
    switch (op) {
      case ReduceOp::prod: value *= other; break;
      case ReduceOp::band: value &= other; break;
      case ReduceOp::bor: value |= other; break;
      case ReduceOp::bxor: value ^= other; break;
      default: value += other; break;
    }
  }
  if (op == ReduceOp::premulsum) value *= static_cast<std::uint64_t>(premul_factor(plan.rule.type));
  if (op == ReduceOp::avg) {  // the sum does not wrap, by construction; the quotient is truncated to zero
    const std::int64_t sum = is_signed_integer(plan.rule.type) ? sign_extended(low_bits(value, plan.bytes), plan.bytes)
                                                               : static_cast<std::int64_t>(low_bits(value, plan.bytes));
    value = static_cast<std::uint64_t>(sum / plan.rule.ranks);
  }
  return low_bits(value, plan.bytes);
}

// One node of the canonical tree over ranks [first, first + ranks), in the accumulator's type.
template <typename Accumulator>
Accumulator canonical_node(const Plan& plan, std::uint64_t shared, Rank first, int ranks) {
  const Reduction& reduction = plan.rule.reduction;
  if (ranks == 1) {
    const auto leaf = static_cast<Accumulator>(float_value(plan.format, draw_one(plan, shared, first)));
    return reduction.op == ReduceOp::premulsum ? leaf * static_cast<Accumulator>(reduction.factor) : leaf;
  }
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks - 1)));
  const Accumulator a = canonical_node<Accumulator>(plan, shared, first, left);
  const Accumulator b = canonical_node<Accumulator>(plan, shared, first + left, ranks - left);
  return reduction.op == ReduceOp::prod ? a * b : a + b;
}

template <typename Accumulator>
std::uint64_t canonical_result(const Plan& plan, std::uint64_t shared) {
  Accumulator root = canonical_node<Accumulator>(plan, shared, 0, plan.rule.ranks);
  if (plan.rule.reduction.op == ReduceOp::avg) root /= static_cast<Accumulator>(plan.rule.ranks);
  return float_bits_rounded(plan.format, static_cast<double>(root));
}

std::uint64_t reduce_one(const Plan& plan, std::uint64_t shared) {
  if (plan.ordered)
    return plan.rule.type == DataType::float64 ? canonical_result<double>(plan, shared)
                                               : canonical_result<float>(plan, shared);
  const ReduceOp op = plan.rule.reduction.op;
  if (op == ReduceOp::min || op == ReduceOp::max) return reduce_least_or_most(plan, shared);
  return plan.floating ? reduce_exact_floats(plan, shared) : reduce_integers(plan, shared);
}

// (ranks + 2) roundings, each of at most one unit of the largest partial result, or of the least subnormal number.
bool within_error_bound(const Plan& plan, std::uint64_t shared, std::uint64_t got) {
  const int ranks = plan.rule.ranks;
  const Reduction& reduction = plan.rule.reduction;
  long double exact = reduction.op == ReduceOp::prod ? 1 : 0;
  long double size = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const long double value = float_value(plan.format, draw_one(plan, shared, rank));
    exact = reduction.op == ReduceOp::prod ? exact * value : exact + value;
    size += std::fabs(value);
  }
  if (reduction.op == ReduceOp::prod) size = 2 * std::fabs(exact);
  long double scale = 1;
  if (reduction.op == ReduceOp::premulsum) scale = reduction.factor;
  if (reduction.op == ReduceOp::avg) scale = 1.0L / ranks;
  const long double unit = std::scalbn(1.0L, -plan.format.mantissa_bits);
  const long double least = std::scalbn(1.0L, plan.format.least_exponent() - plan.format.mantissa_bits);
  const long double bound =
      (ranks + 2) * (unit * size * std::fabs(scale) + least * (reduction.op == ReduceOp::prod ? 64 : 1));
  return std::fabs(static_cast<long double>(float_value(plan.format, got)) - exact * scale) <= bound;
}

}  // namespace

double premul_factor(DataType type) { return is_float(type) ? 0.5 : 3; }

bool depends_on_order(const ValueRule& rule) {
  const ReduceOp op = rule.reduction.op;
  return rule.sensitive && rule.reduces && is_float(rule.type) &&
         (op == ReduceOp::sum || op == ReduceOp::avg || op == ReduceOp::premulsum || op == ReduceOp::prod);
}

void draw_input(const ValueRule& rule, Rank rank, std::size_t first, std::size_t count, std::byte* out) {
  const Plan plan = make_plan(rule);
  for (std::size_t i = 0; i < count; ++i)
    store_bits(out + i * plan.bytes, plan.bytes, draw_one(plan, shared_chance(rule, first + i), rank));
}

void draw_reduced(const ValueRule& rule, std::size_t first, std::size_t count, std::byte* out) {
  const Plan plan = make_plan(rule);
  for (std::size_t i = 0; i < count; ++i)
    store_bits(out + i * plan.bytes, plan.bytes, reduce_one(plan, shared_chance(rule, first + i)));
}

bool acceptable(const ValueRule& rule, std::size_t index, const std::byte* got) {
  const Plan plan = make_plan(rule);
  const std::uint64_t bits = load_bits(got, plan.bytes);
  if (!rule.reduces || !plan.floating || is_nan_bits(plan.format, bits)) return false;
  const std::uint64_t shared = shared_chance(rule, index);
  if (plan.ordered) return !rule.canonical && within_error_bound(plan, shared, bits);
  return rule.reduction.op == ReduceOp::avg &&
         ulps_between(plan.format, reduce_one(plan, shared), bits) <= kUlpsOfAverage;
}

std::uint64_t load_bits(const std::byte* element, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, bytes);  // little-endian, as every machine that this runs on
  return bits;
}

void store_bits(std::byte* element, std::size_t bytes, std::uint64_t bits) { std::memcpy(element, &bits, bytes); }

}  // namespace sluice::tools
