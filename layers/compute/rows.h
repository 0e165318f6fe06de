// The row-wise arithmetic that stands between the matrix products. Deterministic: a row's result depends on that row alone.
#pragma once

#include "layers/compute/gemm.h"

namespace sluice {

// Sums run in eight partial results side by side, so that vectors of any width up to that give the same bits.
inline constexpr Index kParts = 8;

template <typename T>
T sum_of_parts(const T (&part)[kParts]) {
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

template <typename T>
T dot(const T* a, const T* b, Index count) {
  T part[kParts] = {};
  Index j = 0;
  for (; j + kParts <= count; j += kParts)
    for (Index i = 0; i < kParts; ++i) part[i] += a[j + i] * b[j + i];
  for (; j < count; ++j) part[j % kParts] += a[j] * b[j];
  return sum_of_parts(part);
}

// Count >= 1.
template <typename T>
T largest(const T* x, Index count) {
  T part[kParts];
  std::fill_n(part, kParts, x[0]);
  Index j = 0;
  for (; j + kParts <= count; j += kParts)
    for (Index i = 0; i < kParts; ++i) part[i] = x[j + i] > part[i] ? x[j + i] : part[i];
  for (; j < count; ++j) part[0] = std::max(part[0], x[j]);
  return *std::max_element(part, part + kParts);
}

// Each row becomes exp(x - max) / sum, in place. Columns >= 1.
template <typename T>
void softmax_rows(View<T> x);

// The softmax's backward: ds = p * (dp - sum over the row of dp * p) * scale, in place in dp.
template <typename T>
void softmax_rows_backward(Read<T> p, View<T> dp, T scale);

// target += source, element by element.
template <typename T>
void add_rows(View<T> target, Read<T> source);

template <typename T>
void zero(View<T> target);

}  // namespace sluice
