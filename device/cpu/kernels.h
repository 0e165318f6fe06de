// The loops under combine(), as a table of functions that is compiled once per instruction set.
//
//   Shapes   each function runs over `count` values at any byte alignment; `out` may be exactly one of the inputs if
//            it has the same form; other overlap is not allowed.
//   Bits     the same in every set, and for every cut of a buffer into calls: each value depends on its operands
//            alone. No reassociation, no contraction; NaN from an operation is the one quiet NaN, since which
//            payload survives would depend on the order in which a compiler puts the operands.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace sluice {

using Convert = void (*)(std::byte* out, const std::byte* in, std::size_t count);
using Fold = void (*)(std::byte* out, const std::byte* left, const std::byte* right, std::size_t count);
using Store = void (*)(std::byte* to, const std::byte* from, std::size_t bytes);
using Scale = void (*)(std::byte* out, const std::byte* in, double operand, std::size_t count);

// One per ReduceOp; avg and premulsum fold as sum. Null where check_pair refuses the pair.
using Folds = std::array<Fold, kReduceOps>;

// "element" and "value" (accumulator) are one form where the element is its own accumulator: then widen and narrow are
// null and the three kinds of fold are the same.
struct TypeKernels {
  Convert widen = nullptr;   // elements to values
  Convert narrow = nullptr;  // values to elements
  Convert quiet = nullptr;   // values: every NaN to the one quiet NaN; null for integers
  Scale multiply = nullptr;  // values, by the operand converted to their type (an integer: towards zero, saturated)
  Scale divide = nullptr;    // values, by a whole operand of 1..2^31; integers towards zero
  Folds fold{};              // values with values to values
  Folds fold_element{};      // values with elements to values
  Folds fold_elements{};     // elements with elements to elements
};

struct Kernels {
  const char* name = nullptr;  // of the instruction set
  Store copy = nullptr;
  Store stream = nullptr;  // copies past the caches; store_fence() makes it visible to others
  std::array<TypeKernels, kDataTypes> types{};
};

// What was streamed is seen by whoever sees a later store.
void store_fence();

// Every set that this build has and this processor can run, the best last; never empty. Any thread.
std::span<const Kernels* const> runnable_kernels();

}  // namespace sluice
