// Input values and expected results of the benchmark programs' checks: functions of (seed, element, rank) alone, so that every
// rank knows what every other rank gave. Nothing is stored and nothing is exchanged.
//
//   Moved      (no reduction) random bits of the type's width; every bit pattern must arrive.
//   Exact      every order of summation gives the same bits: sums are whole numbers times a power of two that all ranks share,
//              bounded so that each partial sum fits into the type's mantissa; products are signed powers of two with
//              bounded exponents; integers wrap, which is associative; min, max: any number but NaN and -0; bitwise: any.
//              Averages of integers stay small enough not to wrap.
//   Sensitive  (floats with sum, avg, premulsum, prod) random mantissas and exponents: the result depends on the order. The
//              expected value is the canonical one: a tree over ranks that splits at the largest power of two below
//              their number, in float (double for float64), rounded once.
//   Cost       an expected element draws one value per rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.h"

namespace sluice::tools {

struct ValueRule {
  DataType type = DataType::float32;
  bool reduces = false;
  Reduction reduction = {};
  int ranks = 1;
  std::uint64_t seed = 1;
  bool sensitive = false;
  bool canonical = false;  // sensitive: the result must have exactly the canonical bits
};

// The factor that premulsum multiplies with in these checks: exact for every type.
double premul_factor(DataType type);

// True if these inputs do depend on the order (a float type and an operation that rounds).
bool depends_on_order(const ValueRule& rule);

// `count` elements from index `first` of what `rank` gives.
void draw_input(const ValueRule& rule, Rank rank, std::size_t first, std::size_t count, std::byte* out);
// The reduction over all ranks of the elements from index `first`.
void draw_reduced(const ValueRule& rule, std::size_t first, std::size_t count, std::byte* out);

// Whether `got`, which differs from draw_reduced's element `index`, is right all the same: averages of floats within 2 units
// in the last place (as nccl-tests allows); sensitive values in fast order within the error bound of any order of rounding,
// (ranks + 2) units of the sum of magnitudes.
bool acceptable(const ValueRule& rule, std::size_t index, const std::byte* got);

// Bits of one element, as an unsigned number.
std::uint64_t load_bits(const std::byte* element, std::size_t bytes);
void store_bits(std::byte* element, std::size_t bytes, std::uint64_t bits);

}  // namespace sluice::tools
