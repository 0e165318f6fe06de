// The loops of arithmetic over one row, as a table of functions that is compiled once per instruction set.
//
//   Bits     the same in every set: no reassociation, no contraction; sums run in eight partial results side by side and
//            are joined in one fixed way, so vectors of any width up to eight give them alike.
//   Shapes   `count` contiguous elements, >= 0; >= 1 for softmax and largest.
#pragma once

#include <cstddef>
#include <span>

namespace sluice {

template <typename T>
struct RowKernels {
  const char* name = nullptr;  // of the instruction set
  T (*dot)(const T* a, const T* b, std::ptrdiff_t count);
  T (*largest)(const T* x, std::ptrdiff_t count);
  // x becomes exp(x - max) / sum.
  void (*softmax)(T* x, std::ptrdiff_t count);
  // dp becomes p * (dp - sum of dp * p) * scale.
  void (*softmax_backward)(const T* p, T* dp, std::ptrdiff_t count, T scale);
  // inner = silu(gate) * up
  void (*swiglu)(const T* gate, const T* up, T* inner, std::ptrdiff_t count);
  // gate and up become their gradients.
  void (*swiglu_backward)(T* gate, T* up, const T* dinner, std::ptrdiff_t count);
};

// Every set that this build has and this processor can run, the best last; never empty. Any thread.
template <typename T>
std::span<const RowKernels<T>* const> runnable_row_kernels();

// The best of them.
template <typename T>
const RowKernels<T>& row_kernels();

}  // namespace sluice
