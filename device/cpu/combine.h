// The combine kernels: n sources are read once each, folded in a stated tree, and written to m targets.
//
//   Shapes   every operand holds `count` values, at any byte alignment, as elements of `type` or as
//            accumulator values (float32 for floats of up to 32 bits, otherwise the type itself).
//   Cost     each source is read once, each target written once; no allocation; at most 64 KiB of stack.
//   Overlap  a target may be exactly one of the sources (same address and form); no other overlap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace sluice {

// How values lie in memory.
enum class Form : std::uint8_t { element, accumulator };

// How n sources fold. `chain`: ((s0+s1)+s2)+...; `canonical`: the balanced tree over positions that splits
// at the largest power of two below n.
enum class Tree : std::uint8_t { chain, canonical };

struct CombineSource {
  const void* data = nullptr;
  Form form = Form::element;
  bool leaf = false;  // an input as the caller gave it: premulsum multiplies it, nothing else
};

struct CombineTarget {
  void* data = nullptr;
  Form form = Form::element;
  bool stream = false;  // nobody reads it soon: stored past the caches, and visible to all when combine() returns
};

struct CombineRule {
  DataType type = DataType::float32;
  Reduction reduction;
  Tree tree = Tree::chain;
  bool final = false;  // the result is the whole reduction: avg divides by `ranks` here
  int ranks = 1;
  bool canonical_nan = false;  // Order::canonical: every NaN in the result becomes one quiet NaN
  bool operator==(const CombineRule&) const = default;
};

inline constexpr std::size_t kCombineSourcesMax = 4096;  // the most ranks that a schedule may have

// Sources 1..kCombineSourcesMax, targets 1..n, all different. One source: a copy (converted between forms if they
// differ; bits are kept when they do not, and no leaf is multiplied nor average divided unless `final`
// or `leaf` asks for it). The pair (type, op) must have passed check_pair. Any thread.
//
// Arithmetic: integers wrap; floats of up to 32 bits are folded in float32 and rounded once, to nearest even, when
// written as elements (float8_e4m3 saturates to its largest finite value, as it has no infinity);
// float64 in float64. min and max give NaN if any operand is NaN, and put -0 below +0. An integer average truncates to
// zero; an integer premulsum takes the factor truncated to zero and saturated. A NaN that a fold gives, or that is
// narrowed, is always the one quiet NaN; `canonical_nan` asks it of a copy too, if that is `final`.
//
// The result depends neither on count, alignment and cut of the buffers nor on the processor.
void combine(const CombineRule& rule, std::span<const CombineSource> sources, std::span<const CombineTarget> targets,
             std::size_t count);

// How combines of one rule go whose operands have these forms and leaves, found out once for many of them.
struct CombineWay {
  enum class Kind : std::uint8_t { general, copy, fold } kind = Kind::general;
  // fold: of two sources straight to the form of the targets
  void (*fold)(std::byte* out, const std::byte* left, const std::byte* right, std::size_t count) = nullptr;
  std::size_t value_bytes = 1;  // copy and fold
};
CombineWay way_of(const CombineRule& rule, std::span<const CombineSource> sources,
                  std::span<const CombineTarget> targets);
void combine(const CombineWay& way, const CombineRule& rule, std::span<const CombineSource> sources,
             std::span<const CombineTarget> targets, std::size_t count);

// The same by the kernels of one instruction set (device/cpu/kernels.h), for tests and benchmarks.
struct Kernels;
void combine_with(const Kernels& kernels, const CombineRule& rule, std::span<const CombineSource> sources,
                  std::span<const CombineTarget> targets, std::size_t count);

// Single conversions, for reference computations and tests.
float to_float(DataType type, const void* element);          // floats of up to 32 bits
void from_float(DataType type, float value, void* element);  // rounds to nearest even

}  // namespace sluice
