// Reductions computed a second time, as dumbly as possible: one value after another, small floats by searching a
// sorted list of all their values, float32 arithmetic in double and then rounded, integers in 128 bits. Shares no
// code with device/cpu. Slow: for thousands of values, not millions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "device/cpu/combine.h"

namespace sluice::test {

using Bytes = std::vector<std::byte>;

// One result of a whole reduction over inputs[rank], all of one length in bytes (a multiple of element_bytes): elements,
// with premulsum's factor at the leaves and avg's division at the root. `canonical`: what Order::canonical promises,
// to the bit. `chain`: ((r0+r1)+r2)+... with one rounding at the end.
Bytes reduce(const std::vector<Bytes>& inputs, DataType type, const Reduction& reduction, Tree tree = Tree::canonical);

// What combine() must write to a target of form `to`.
struct ReferenceSource {
  Bytes bytes;
  Form form = Form::element;
  bool leaf = false;
};
Bytes combine(const CombineRule& rule, const std::vector<ReferenceSource>& sources, Form to);

// A float element's value, and the element nearest to a value (ties to even; what overflows or is NaN as combine.h
// says). Any float type.
double decode(DataType type, const std::byte* element);
void encode(DataType type, double value, std::byte* element);

// Where two buffers differ, NaNs of any payload being equal unless `exact`: the first index, or -1.
std::ptrdiff_t first_difference(DataType type, const Bytes& got, const Bytes& want, bool exact = true);

// Inputs whose reduction is exact in any order and with any rounding of partial results to elements, so that every
// algorithm must give the bits of reduce(): small whole numbers for sum, avg and premulsum (by a power of two),
// powers of two for prod, any finite values for min and max, any bits for integers. inputs[rank].
std::vector<Bytes> whole_inputs(DataType type, ReduceOp op, int ranks, std::size_t count, std::uint64_t seed = 1);

// Inputs whose sum depends on the order: for every value two ranks hold a large number and its negative, and the others
// hold small ones, that are lost if they meet the large one alone. From 3 ranks on, for float16, bfloat16, float32,
// float64 and float8_e5m2 (a float8_e4m3 sum of few ranks is exact in float32); integers: any bits.
std::vector<Bytes> order_sensitive_inputs(DataType type, int ranks, std::size_t count, std::uint64_t seed = 1);

}  // namespace sluice::test
