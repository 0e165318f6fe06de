// The row-wise arithmetic that stands between the matrix products. Deterministic: a row's result depends on that row alone,
// and not on the processor's vectors (row_kernels.h).
#pragma once

#include "layers/compute/gemm.h"
#include "layers/compute/row_kernels.h"

namespace sluice {

template <typename T>
T dot(const T* a, const T* b, Index count) {
  return row_kernels<T>().dot(a, b, count);
}

// Each row becomes exp(x - max) / sum, in place. Columns >= 1.
template <typename T>
void softmax_rows(View<T> x) {
  for (Index i = 0; i < x.rows; ++i) row_kernels<T>().softmax(x.row(i), x.columns);
}

// The softmax's backward: ds = p * (dp - sum over the row of dp * p) * scale, in place in dp.
template <typename T>
void softmax_rows_backward(Read<T> p, View<T> dp, T scale) {
  for (Index i = 0; i < dp.rows; ++i) row_kernels<T>().softmax_backward(p.row(i), dp.row(i), dp.columns, scale);
}

template <typename T>
void zero(View<T> target) {
  for (Index i = 0; i < target.rows; ++i) std::fill_n(target.row(i), target.columns, T{0});
}

}  // namespace sluice
