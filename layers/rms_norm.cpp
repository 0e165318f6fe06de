#include "layers/rms_norm.h"

#include <cmath>

#include "layers/compute/rows.h"

namespace sluice {
namespace {
constexpr double kEpsilon = 1e-6;
}

template <typename T>
void RmsNorm<T>::forward(Read<T> x, View<T> y, Saved& saved) const {
  saved.inverse_rms.resize(static_cast<std::size_t>(x.rows));
  const T* gain = gain_.value.data;
  for (Index i = 0; i < x.rows; ++i) {
    const T* in = x.row(i);
    T* out = y.row(i);
    const T mean = dot(in, in, x.columns) / static_cast<T>(x.columns);
    const T inverse = T{1} / std::sqrt(mean + static_cast<T>(kEpsilon));
    saved.inverse_rms[static_cast<std::size_t>(i)] = inverse;
    for (Index j = 0; j < x.columns; ++j) out[j] = gain[j] * (in[j] * inverse);
  }
}

// With n = x * inverse and w = gain * dy: dx = inverse * (w - n * mean(w * n)), dgain = sum of dy * n.
template <typename T>
void RmsNorm<T>::backward(Read<T> x, Read<T> dy, View<T> dx, const Saved& saved) const {
  const Index columns = x.columns;
  const T* gain = gain_.value.data;
  T* dgain = gain_.gradient.data;
  std::vector<T> weighted(static_cast<std::size_t>(columns));
  for (Index i = 0; i < x.rows; ++i) {
    const T inverse = saved.inverse_rms[static_cast<std::size_t>(i)];
    const T* in = x.row(i);
    const T* out = dy.row(i);
    T* to = dx.row(i);
    for (Index j = 0; j < columns; ++j) {
      weighted[static_cast<std::size_t>(j)] = gain[j] * out[j];
      dgain[j] += out[j] * (in[j] * inverse);
    }
    const T mean = dot<T>(weighted.data(), in, columns) * inverse / static_cast<T>(columns);
    for (Index j = 0; j < columns; ++j)
      to[j] += inverse * (weighted[static_cast<std::size_t>(j)] - in[j] * inverse * mean);
  }
}

template class RmsNorm<float>;
template class RmsNorm<double>;

}  // namespace sluice
