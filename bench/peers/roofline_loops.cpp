#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peers/roofline_loops.cpp"
#include <hwy/foreach_target.h>
// Highway compiles what follows once for each instruction set, so it stands above the includes that need not be repeated.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "bench/peers/roofline_loops.h"

HWY_BEFORE_NAMESPACE();
namespace peers {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The sum of all sources at `i`, as a vector.
struct Sum {
  template <class D>
  static HWY_INLINE hn::Vec<D> at(D d, const float* const* sources, std::size_t n, std::size_t i) {
    auto sum = hn::LoadU(d, sources[0] + i);
    for (std::size_t source = 1; source < n; ++source) sum = hn::Add(sum, hn::LoadU(d, sources[source] + i));
    return sum;
  }
};

struct Triad {
  template <class D>
  static HWY_INLINE hn::Vec<D> at(D d, const float* const* sources, std::size_t, std::size_t i) {
    return hn::MulAdd(hn::Set(d, 3.0F), hn::LoadU(d, sources[1] + i), hn::LoadU(d, sources[0] + i));
  }
};

// kSources, kTargets: known numbers, or 0 for any. kStream: every target is aligned at `begin`.
template <class Rule, std::size_t kSources, std::size_t kTargets, bool kStream>
HWY_NOINLINE void body(const Move& one, std::size_t begin) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> d1;
  const std::size_t n = kSources == 0 ? one.sources.size() : kSources;
  const std::size_t m = kTargets == 0 ? one.targets.size() : kTargets;
  const float* sources[kSources == 0 ? 1 : kSources];
  float* targets[kTargets == 0 ? 1 : kTargets];
  for (std::size_t s = 0; s < kSources; ++s) sources[s] = one.sources[s];
  for (std::size_t t = 0; t < kTargets; ++t) targets[t] = one.targets[t];
  const float* const* from = kSources == 0 ? one.sources.data() : sources;
  float* const* to = kTargets == 0 ? one.targets.data() : targets;
  const std::size_t lanes = hn::Lanes(d);

  std::size_t i = begin;
  for (; i + 4 * lanes <= one.count; i += 4 * lanes) {
    const auto v0 = Rule::at(d, from, n, i), v1 = Rule::at(d, from, n, i + lanes);
    const auto v2 = Rule::at(d, from, n, i + 2 * lanes), v3 = Rule::at(d, from, n, i + 3 * lanes);
    for (std::size_t t = 0; t < m; ++t) {
      float* at = to[t] + i;
      if constexpr (kStream) {
        hn::Stream(v0, d, at);
        hn::Stream(v1, d, at + lanes);
        hn::Stream(v2, d, at + 2 * lanes);
        hn::Stream(v3, d, at + 3 * lanes);
      } else {
        hn::StoreU(v0, d, at);
        hn::StoreU(v1, d, at + lanes);
        hn::StoreU(v2, d, at + 2 * lanes);
        hn::StoreU(v3, d, at + 3 * lanes);
      }
    }
  }
  for (; i < one.count; ++i) {
    const auto value = Rule::at(d1, from, n, i);
    for (std::size_t t = 0; t < m; ++t) hn::StoreU(value, d1, to[t] + i);
  }
  if constexpr (kStream) hwy::FlushStream();
}

// Elements before the first whole line of the targets; `count` if they are aligned differently.
std::size_t head(const Move& one) {
  constexpr std::size_t kLine = 64;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(one.targets[0]) % kLine;
  for (const float* target : one.targets)
    if (reinterpret_cast<std::uintptr_t>(target) % kLine != past) return one.count;
  const std::size_t elements = (kLine - past) % kLine / sizeof(float);
  return elements < one.count ? elements : one.count;
}

template <class Rule, std::size_t kSources, std::size_t kTargets>
void vector_or_streaming(const Move& one, bool stream) {
  const std::size_t aligned = stream ? head(one) : one.count;
  if (aligned == one.count) return body<Rule, kSources, kTargets, false>(one, 0);
  Move first = one;
  first.count = aligned;
  body<Rule, kSources, kTargets, false>(first, 0);
  body<Rule, kSources, kTargets, true>(one, aligned);
}

void move_vectors(const Move& one, bool stream) {
  const std::size_t n = one.sources.size(), m = one.targets.size();
  if (n == 1 && m == 1) return vector_or_streaming<Sum, 1, 1>(one, stream);
  if (n == 2 && m == 1) return vector_or_streaming<Sum, 2, 1>(one, stream);
  if (n == 2 && m == 2) return vector_or_streaming<Sum, 2, 2>(one, stream);
  if (n == 4 && m == 1) return vector_or_streaming<Sum, 4, 1>(one, stream);
  if (n == 4 && m == 4) return vector_or_streaming<Sum, 4, 4>(one, stream);
  vector_or_streaming<Sum, 0, 0>(one, stream);
}

void triad_vectors(const Move& one, bool stream) { vector_or_streaming<Triad, 2, 1>(one, stream); }

}  // namespace HWY_NAMESPACE
}  // namespace peers
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

namespace peers {
namespace {

HWY_EXPORT(move_vectors);
HWY_EXPORT(triad_vectors);

void move_plainly(const Move& one) {
  for (float* target : one.targets) {
    const float* a = one.sources[0];
    if (one.sources.size() == 1) {
      std::memcpy(target, a, one.count * sizeof(float));
      continue;
    }
    const float* b = one.sources[1];
    for (std::size_t i = 0; i < one.count; ++i) target[i] = a[i] + b[i];
    for (std::size_t source = 2; source < one.sources.size(); ++source)
      for (std::size_t i = 0; i < one.count; ++i) target[i] += one.sources[source][i];
  }
}

void triad_plainly(const Move& one) {
  for (std::size_t i = 0; i < one.count; ++i) one.targets[0][i] = one.sources[0][i] + 3 * one.sources[1][i];
}

}  // namespace

void move(Loop loop, const Move& one) {
  if (loop == Loop::regular) return move_plainly(one);
  HWY_DYNAMIC_DISPATCH(move_vectors)(one, loop == Loop::streaming);
}

void triad(Loop loop, const Move& one) {
  if (loop == Loop::regular) return triad_plainly(one);
  HWY_DYNAMIC_DISPATCH(triad_vectors)(one, loop == Loop::streaming);
}

}  // namespace peers
#endif
