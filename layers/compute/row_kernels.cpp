// Compiled once per instruction set, with SLUICE_ROW_KERNELS naming it. Nothing here may be shared between the sets by the
// linker: helpers are internal to this file or always inlined.
#include "layers/compute/row_kernels.h"

#include "layers/compute/exponential.h"

namespace sluice::SLUICE_ROW_KERNELS {

extern const RowKernels<float> float_kernels;
extern const RowKernels<double> double_kernels;

namespace {

using Index = std::ptrdiff_t;
constexpr Index kParts = 8;

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

template <typename T>
T largest(const T* x, Index count) {
  T part[kParts];
  for (Index i = 0; i < kParts; ++i) part[i] = x[0];
  Index j = 0;
  for (; j + kParts <= count; j += kParts)
    for (Index i = 0; i < kParts; ++i) part[i] = x[j + i] > part[i] ? x[j + i] : part[i];
  for (; j < count; ++j) part[0] = x[j] > part[0] ? x[j] : part[0];
  for (Index i = 1; i < kParts; ++i) part[0] = part[i] > part[0] ? part[i] : part[0];
  return part[0];
}

template <typename T>
T sum(const T* x, Index count) {
  T part[kParts] = {};
  Index j = 0;
  for (; j + kParts <= count; j += kParts)
    for (Index i = 0; i < kParts; ++i) part[i] += x[j + i];
  for (; j < count; ++j) part[j % kParts] += x[j];
  return sum_of_parts(part);
}

template <typename T>
void softmax(T* x, Index count) {
  const T most = largest(x, count);
  for (Index j = 0; j < count; ++j) x[j] = exponential(x[j] - most);
  const T inverse = T{1} / sum(x, count);
  for (Index j = 0; j < count; ++j) x[j] *= inverse;
}

template <typename T>
void softmax_backward(const T* p, T* dp, Index count, T scale) {
  const T mean = dot<T>(p, dp, count);
  for (Index j = 0; j < count; ++j) dp[j] = p[j] * (dp[j] - mean) * scale;
}

template <typename T>
[[gnu::always_inline]] inline T sigmoid(T x) {
  return T{1} / (T{1} + exponential(-x));
}

template <typename T>
void swiglu(const T* gate, const T* up, T* inner, Index count) {
  for (Index j = 0; j < count; ++j) inner[j] = gate[j] * sigmoid(gate[j]) * up[j];
}

// silu'(g) = s + g s (1 - s)
template <typename T>
void swiglu_backward(T* gate, T* up, const T* dinner, Index count) {
  for (Index j = 0; j < count; ++j) {
    const T s = sigmoid(gate[j]);
    const T silu = gate[j] * s;
    const T slope = s + silu * (T{1} - s);
    gate[j] = dinner[j] * up[j] * slope;
    up[j] = dinner[j] * silu;
  }
}

#define SLUICE_STRING_(x) #x
#define SLUICE_STRING(x) SLUICE_STRING_(x)

}  // namespace

constexpr RowKernels<float> float_kernels{
    SLUICE_STRING(SLUICE_ROW_KERNELS), dot, largest, softmax, softmax_backward, swiglu, swiglu_backward};
constexpr RowKernels<double> double_kernels{
    SLUICE_STRING(SLUICE_ROW_KERNELS), dot, largest, softmax, softmax_backward, swiglu, swiglu_backward};

}  // namespace sluice::SLUICE_ROW_KERNELS
