#include "layers/compute/rows.h"

#include "layers/compute/exponential.h"

namespace sluice {
namespace {

template <typename T>
T sum_of_exponentials(T* x, Index count, T most) {
  for (Index j = 0; j < count; ++j) x[j] = exponential(x[j] - most);
  T part[kParts] = {};
  Index j = 0;
  for (; j + kParts <= count; j += kParts)
    for (Index i = 0; i < kParts; ++i) part[i] += x[j + i];
  for (; j < count; ++j) part[j % kParts] += x[j];
  return sum_of_parts(part);
}

}  // namespace

template <typename T>
void softmax_rows(View<T> x) {
  for (Index i = 0; i < x.rows; ++i) {
    T* row = x.row(i);
    const T inverse = T{1} / sum_of_exponentials(row, x.columns, largest(row, x.columns));
    for (Index j = 0; j < x.columns; ++j) row[j] *= inverse;
  }
}

template <typename T>
void softmax_rows_backward(Read<T> p, View<T> dp, T scale) {
  for (Index i = 0; i < dp.rows; ++i) {
    const T* value = p.row(i);
    T* row = dp.row(i);
    const T mean = dot<T>(value, row, dp.columns);
    for (Index j = 0; j < dp.columns; ++j) row[j] = value[j] * (row[j] - mean) * scale;
  }
}

template <typename T>
void add_rows(View<T> target, Read<T> source) {
  for (Index i = 0; i < target.rows; ++i) {
    T* to = target.row(i);
    const T* from = source.row(i);
    for (Index j = 0; j < target.columns; ++j) to[j] += from[j];
  }
}

template <typename T>
void zero(View<T> target) {
  for (Index i = 0; i < target.rows; ++i) std::fill_n(target.row(i), target.columns, T{0});
}

template void softmax_rows(View<float>);
template void softmax_rows(View<double>);
template void softmax_rows_backward(Read<float>, View<float>, float);
template void softmax_rows_backward(Read<double>, View<double>, double);
template void add_rows(View<float>, Read<float>);
template void add_rows(View<double>, Read<double>);
template void zero(View<float>);
template void zero(View<double>);

}  // namespace sluice
