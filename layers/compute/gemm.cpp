#include "layers/compute/gemm.h"

#include <cblas.h>

#include <limits>

namespace sluice {
namespace {

blasint extent(Index value) {
  SLUICE_ASSERT(value >= 0 && value <= std::numeric_limits<int>::max(),
                "a matrix extent does not fit OpenBLAS's integer");
  return static_cast<blasint>(value);
}

blasint leading(Index stride) { return extent(std::max<Index>(stride, 1)); }

void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, Index depth, View<float> c, View<const float> a, View<const float> b,
          float scale, float keep) {
  cblas_sgemm(CblasRowMajor, ta, tb, extent(c.rows), extent(c.columns), extent(depth), scale, a.data, leading(a.stride),
              b.data, leading(b.stride), keep, c.data, leading(c.stride));
}

void call(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, Index depth, View<double> c, View<const double> a,
          View<const double> b, double scale, double keep) {
  cblas_dgemm(CblasRowMajor, ta, tb, extent(c.rows), extent(c.columns), extent(depth), scale, a.data, leading(a.stride),
              b.data, leading(b.stride), keep, c.data, leading(c.stride));
}

template <typename T>
void product(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, Index depth, View<T> c, Into into, View<const T> a,
             View<const T> b, T scale) {
  if (c.rows == 0 || c.columns == 0) return;
  if (depth > 0) return call(ta, tb, depth, c, a, b, scale, into == Into::add ? T{1} : T{0});
  if (into == Into::replace)
    for (Index i = 0; i < c.rows; ++i) std::fill_n(c.row(i), c.columns, T{0});
}

}  // namespace

template <typename T>
void multiply(View<T> target, Into into, Read<T> a, Read<T> b, T scale) {
  SLUICE_ASSERT(a.rows == target.rows && b.columns == target.columns && a.columns == b.rows,
                "shapes of a product differ");
  product<T>(CblasNoTrans, CblasNoTrans, a.columns, target, into, a, b, scale);
}

template <typename T>
void multiply_by_transposed(View<T> target, Into into, Read<T> a, Read<T> b, T scale) {
  SLUICE_ASSERT(a.rows == target.rows && b.rows == target.columns && a.columns == b.columns,
                "shapes of a product differ");
  product<T>(CblasNoTrans, CblasTrans, a.columns, target, into, a, b, scale);
}

template <typename T>
void multiply_transposed(View<T> target, Into into, Read<T> a, Read<T> b, T scale) {
  SLUICE_ASSERT(a.columns == target.rows && b.columns == target.columns && a.rows == b.rows,
                "shapes of a product differ");
  product<T>(CblasTrans, CblasNoTrans, a.rows, target, into, a, b, scale);
}

void use_one_blas_thread() { openblas_set_num_threads(1); }

template void multiply(View<float>, Into, Read<float>, Read<float>, float);
template void multiply(View<double>, Into, Read<double>, Read<double>, double);
template void multiply_by_transposed(View<float>, Into, Read<float>, Read<float>, float);
template void multiply_by_transposed(View<double>, Into, Read<double>, Read<double>, double);
template void multiply_transposed(View<float>, Into, Read<float>, Read<float>, float);
template void multiply_transposed(View<double>, Into, Read<double>, Read<double>, double);

}  // namespace sluice
