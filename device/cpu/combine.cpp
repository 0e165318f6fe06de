#include "device/cpu/combine.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/assert.h"
#include "device/cpu/copy.h"
#include "device/cpu/kernels.h"

namespace sluice {
namespace {

constexpr std::size_t kBlockBytes = 4096;       // of values; a few blocks stay in the first-level cache
constexpr std::size_t kCopyBlockBytes = 65536;  // of a copy to several targets

// A place where one block of values can be put together.
struct Block {
  alignas(64) std::byte bytes[kBlockBytes];
};

// One call, seen from the block that begins at value `first` and has `count` values.
class Folding {
 public:
  Folding(const Kernels& kernels, const CombineRule& rule, std::span<const CombineSource> sources)
      : type_(kernels.types[static_cast<std::size_t>(rule.type)]),
        rule_(rule),
        sources_(sources),
        op_(static_cast<std::size_t>(rule.reduction.op)),
        element_bytes_(element_bytes(rule.type)),
        value_bytes_(accumulator_bytes(rule.type)) {}

  void at(std::size_t first, std::size_t count) {
    first_ = first;
    count_ = count;
  }

  // Folds all sources and returns where the values are: in `out`, or in the memory of an only source. `work` may be
  // `out`; nothing is written to `out` before every source's block was read, except by the loop that reads the last.
  const std::byte* all(std::byte* work, std::byte* out) const {
    const std::size_t n = sources_.size();
    if (n == 1) return value(0, out);
    if (rule_.tree == Tree::chain) return join(chain(n - 1, work), n - 1, out);
    const std::size_t split = std::bit_floor(n - 1);
    return join_range(tree(0, split, work), split, n - split, out);
  }

 private:
  const std::byte* chain(std::size_t n, std::byte* out) const {
    const std::byte* left = value(0, out);
    for (std::size_t i = 1; i < n; ++i) left = join(left, i, out);
    return left;
  }

  // The balanced tree over sources begin..begin+n-1.
  const std::byte* tree(std::size_t begin, std::size_t n, std::byte* out) const {
    if (n == 1) return value(begin, out);
    const std::size_t split = std::bit_floor(n - 1);
    return join_range(tree(begin, split, out), begin + split, n - split, out);
  }

  const std::byte* join_range(const std::byte* left, std::size_t begin, std::size_t n, std::byte* out) const {
    if (n == 1) return join(left, begin, out);
    Block right;
    type_.fold[op_](out, left, tree(begin, n, right.bytes), count_);
    return out;
  }

  // out = left op source.
  const std::byte* join(const std::byte* left, std::size_t source, std::byte* out) const {
    if (multiplied(sources_[source])) {
      Block right;
      type_.fold[op_](out, left, value(source, right.bytes), count_);
    } else {
      const bool elements = sources_[source].form == Form::element;
      (elements ? type_.fold_element : type_.fold)[op_](out, left, memory(source), count_);
    }
    return out;
  }

  // A source as values: in place if it is that already.
  const std::byte* value(std::size_t source, std::byte* out) const {
    const std::byte* at = memory(source);
    if (sources_[source].form == Form::element && type_.widen != nullptr) {
      type_.widen(out, at, count_);
      at = out;
    }
    if (!multiplied(sources_[source])) return at;
    type_.multiply(out, at, rule_.reduction.factor, count_);
    return out;
  }

  bool multiplied(const CombineSource& source) const {
    return source.leaf && rule_.reduction.op == ReduceOp::premulsum;
  }

  const std::byte* memory(std::size_t source) const {
    const std::size_t bytes = sources_[source].form == Form::element ? element_bytes_ : value_bytes_;
    return static_cast<const std::byte*>(sources_[source].data) + first_ * bytes;
  }

  const TypeKernels& type_;
  const CombineRule& rule_;
  std::span<const CombineSource> sources_;
  std::size_t op_;
  std::size_t element_bytes_;
  std::size_t value_bytes_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

bool divides(const CombineRule& rule) { return rule.final && rule.reduction.op == ReduceOp::avg && rule.ranks > 1; }

std::size_t bytes_of(DataType type, Form form) {
  return form == Form::element ? element_bytes(type) : accumulator_bytes(type);
}

// What every value goes through after the fold. Writes to `out` only if there is something to do.
const std::byte* finished(const TypeKernels& type, const CombineRule& rule, bool copy, const std::byte* values,
                          std::byte* out, std::size_t count) {
  if (divides(rule)) {
    type.divide(out, values, rule.ranks, count);
    values = out;
  }
  if (copy && rule.final && rule.canonical_nan && type.quiet != nullptr) {  // a fold's NaN is quiet already
    type.quiet(out, values, count);
    values = out;
  }
  return values;
}

// Copies into a part of a target, in the way that it asks for.
void put(const Kernels& kernels, const CombineTarget& target, std::byte* to, const std::byte* from, std::size_t bytes) {
  if (target.stream)
    kernels.stream(to, from, bytes);
  else
    copy_bytes(kernels, to, from, bytes);
}

// Writes the finished block to every target; narrows once, to the first or to `work` if that one is streamed.
void write(const Kernels& kernels, DataType data_type, std::span<const CombineTarget> targets, const std::byte* values,
           std::byte* work, std::size_t first, std::size_t count) {
  const TypeKernels& type = kernels.types[static_cast<std::size_t>(data_type)];
  const std::byte* elements = type.narrow == nullptr ? values : nullptr;
  for (const CombineTarget& target : targets) {
    const std::size_t bytes = bytes_of(data_type, target.form);
    std::byte* to = static_cast<std::byte*>(target.data) + first * bytes;
    if (target.form == Form::element && elements == nullptr) {
      std::byte* narrowed = target.stream ? work : to;
      type.narrow(narrowed, values, count);
      elements = narrowed;
    }
    const std::byte* from = target.form == Form::element ? elements : values;
    if (to != from) put(kernels, target, to, from, count * bytes);
  }
}

void by_blocks(const Kernels& kernels, const CombineRule& rule, std::span<const CombineSource> sources,
               std::span<const CombineTarget> targets, std::size_t count) {
  const TypeKernels& type = kernels.types[static_cast<std::size_t>(rule.type)];
  const bool straight = !targets[0].stream && (targets[0].form == Form::accumulator || type.narrow == nullptr);
  const std::size_t block = kBlockBytes / accumulator_bytes(rule.type);
  Folding folding(kernels, rule, sources);
  Block work;
  Block narrowed;
  for (std::size_t first = 0; first < count; first += block) {
    const std::size_t here = std::min(block, count - first);
    std::byte* out =
        straight ? static_cast<std::byte*>(targets[0].data) + first * accumulator_bytes(rule.type) : work.bytes;
    folding.at(first, here);
    const std::byte* values = finished(type, rule, sources.size() == 1, folding.all(work.bytes, out), out, here);
    write(kernels, rule.type, targets, values, narrowed.bytes, first, here);
  }
}

void copy(const Kernels& kernels, std::span<const CombineTarget> targets, const void* source, std::size_t bytes) {
  const std::size_t block = targets.size() == 1 ? bytes : kCopyBlockBytes;
  for (std::size_t first = 0; first < bytes; first += block)
    for (const CombineTarget& target : targets) {
      if (target.data == source) continue;
      std::byte* to = static_cast<std::byte*>(target.data) + first;
      const std::byte* from = static_cast<const std::byte*>(source) + first;
      put(kernels, target, to, from, std::min(block, bytes - first));
    }
}

// Two sources whose fold has the form of all targets.
void fold_two(const Kernels& kernels, const CombineWay& way, std::span<const CombineSource> sources,
              std::span<const CombineTarget> targets, std::size_t count) {
  const auto* left = static_cast<const std::byte*>(sources[0].data);
  const auto* right = static_cast<const std::byte*>(sources[1].data);
  const bool direct = targets.size() == 1 && !targets[0].stream;
  const std::size_t bytes = count * way.value_bytes;
  const std::size_t block = direct ? bytes : kBlockBytes;
  Block work;
  for (std::size_t at = 0; at < bytes; at += block) {
    const std::size_t here = std::min(block, bytes - at);
    std::byte* const out = targets[0].stream ? work.bytes : static_cast<std::byte*>(targets[0].data) + at;
    way.fold(out, left + at, right + at, here / way.value_bytes);
    for (const CombineTarget& target : targets)
      if (std::byte* const to = static_cast<std::byte*>(target.data) + at; to != out)
        put(kernels, target, to, out, here);
  }
}

bool streams(std::span<const CombineTarget> targets) {
  return std::any_of(targets.begin(), targets.end(), [](const CombineTarget& target) { return target.stream; });
}

// Do all operands have one form in memory, and does nothing but the fold happen to them?
bool is_plain(const CombineRule& rule, std::span<const CombineSource> sources, std::span<const CombineTarget> targets) {
  const bool one_form = element_bytes(rule.type) == accumulator_bytes(rule.type);
  const bool premul = rule.reduction.op == ReduceOp::premulsum;
  const Form form = sources[0].form;
  bool plain = !divides(rule);
  for (const CombineSource& source : sources)
    plain = plain && (one_form || source.form == form) && !(premul && source.leaf);
  for (const CombineTarget& target : targets) plain = plain && (one_form || target.form == form);
  return plain;
}

CombineWay way_by(const Kernels& kernels, const CombineRule& rule, std::span<const CombineSource> sources,
                  std::span<const CombineTarget> targets) {
  SLUICE_DEBUG_ASSERT(!sources.empty() && sources.size() <= kCombineSourcesMax,
                      "a combine has 1..kCombineSourcesMax sources");
  const TypeKernels& type = kernels.types[static_cast<std::size_t>(rule.type)];
  const bool quiets = rule.final && rule.canonical_nan && type.quiet != nullptr;
  CombineWay way;
  if (!is_plain(rule, sources, targets)) return way;
  way.value_bytes = bytes_of(rule.type, sources[0].form);
  if (sources.size() == 1 && !quiets) {
    way.kind = CombineWay::Kind::copy;
  } else if (sources.size() == 2) {
    way.kind = CombineWay::Kind::fold;
    const Folds& folds = sources[0].form == Form::element ? type.fold_elements : type.fold;
    way.fold = folds[static_cast<std::size_t>(rule.reduction.op)];
  }
  return way;
}

void combine_by(const Kernels& kernels, const CombineWay& way, const CombineRule& rule,
                std::span<const CombineSource> sources, std::span<const CombineTarget> targets, std::size_t count) {
  if (count == 0) return;
  if (way.kind == CombineWay::Kind::copy)
    copy(kernels, targets, sources[0].data, count * way.value_bytes);
  else if (way.kind == CombineWay::Kind::fold)
    fold_two(kernels, way, sources, targets, count);
  else
    by_blocks(kernels, rule, sources, targets, count);
  if (streams(targets)) store_fence();
}

}  // namespace

CombineWay way_of(const CombineRule& rule, std::span<const CombineSource> sources,
                  std::span<const CombineTarget> targets) {
  return way_by(*runnable_kernels().back(), rule, sources, targets);
}

void combine(const CombineWay& way, const CombineRule& rule, std::span<const CombineSource> sources,
             std::span<const CombineTarget> targets, std::size_t count) {
  combine_by(*runnable_kernels().back(), way, rule, sources, targets, count);
}

void combine(const CombineRule& rule, std::span<const CombineSource> sources, std::span<const CombineTarget> targets,
             std::size_t count) {
  combine_with(*runnable_kernels().back(), rule, sources, targets, count);
}

void combine_with(const Kernels& kernels, const CombineRule& rule, std::span<const CombineSource> sources,
                  std::span<const CombineTarget> targets, std::size_t count) {
  combine_by(kernels, way_by(kernels, rule, sources, targets), rule, sources, targets, count);
}

float to_float(DataType type, const void* element) {
  float value = 0;
  const Convert widen = runnable_kernels().front()->types[static_cast<std::size_t>(type)].widen;
  if (widen != nullptr)
    widen(reinterpret_cast<std::byte*>(&value), static_cast<const std::byte*>(element), 1);
  else
    std::memcpy(&value, element, sizeof value);
  return value;
}

void from_float(DataType type, float value, void* element) {
  const Convert narrow = runnable_kernels().front()->types[static_cast<std::size_t>(type)].narrow;
  if (narrow != nullptr)
    narrow(static_cast<std::byte*>(element), reinterpret_cast<const std::byte*>(&value), 1);
  else
    std::memcpy(element, &value, sizeof value);
}

}  // namespace sluice
