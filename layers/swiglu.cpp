#include "layers/swiglu.h"

#include "layers/compute/exponential.h"

namespace sluice {
namespace {

template <typename T>
T sigmoid(T x) {
  return T{1} / (T{1} + exponential(-x));
}

template <typename T>
void activate(const T* gate, const T* up, T* inner, Index count) {
  for (Index j = 0; j < count; ++j) inner[j] = gate[j] * sigmoid(gate[j]) * up[j];
}

// silu'(g) = s + g s (1 - s). Overwrites gate and up by their gradients.
template <typename T>
void activate_backward(T* gate, T* up, const T* dinner, Index count) {
  for (Index j = 0; j < count; ++j) {
    const T s = sigmoid(gate[j]);
    const T silu = gate[j] * s;
    const T slope = s + silu * (T{1} - s);
    gate[j] = dinner[j] * up[j] * slope;
    up[j] = dinner[j] * silu;
  }
}

}  // namespace

template <typename T>
void Swiglu<T>::forward(Read<T> x, Into into, View<T> y, Saved saved) const {
  multiply_by_transposed(saved.gate_up, Into::replace, x, gate_up_.value);
  for (Index i = 0; i < x.rows; ++i)
    activate<T>(saved.gate_up.row(i), saved.gate_up.row(i) + inner(), saved.inner.row(i), inner());
  multiply_by_transposed(y, into, saved.inner, down_.value);
}

template <typename T>
void Swiglu<T>::backward_input(Read<T> dy, Into into, View<T> dx, Saved saved, View<T> dinner) const {
  multiply(dinner, Into::replace, dy, down_.value);
  for (Index i = 0; i < dy.rows; ++i)
    activate_backward<T>(saved.gate_up.row(i), saved.gate_up.row(i) + inner(), dinner.row(i), inner());
  multiply(dx, into, saved.gate_up, gate_up_.value);
}

template <typename T>
void Swiglu<T>::backward_weight(Read<T> x, Read<T> dy, Saved saved) const {
  multiply_transposed(down_.gradient, Into::add, dy, saved.inner);
  multiply_transposed(gate_up_.gradient, Into::add, saved.gate_up, x);
}

template class Swiglu<float>;
template class Swiglu<double>;

}  // namespace sluice
