#include "layers/swiglu.h"

#include "layers/compute/row_kernels.h"

namespace sluice {

template <typename T>
void Swiglu<T>::forward(Read<T> x, Into into, View<T> y, Saved saved) const {
  multiply_by_transposed(saved.gate_up, Into::replace, x, gate_up_.value);
  for (Index i = 0; i < x.rows; ++i)
    row_kernels<T>().swiglu(saved.gate_up.row(i), saved.gate_up.row(i) + inner(), saved.inner.row(i), inner());
  multiply_by_transposed(y, into, saved.inner, down_.value);
}

template <typename T>
void Swiglu<T>::backward_input(Read<T> dy, Into into, View<T> dx, Saved saved, View<T> dinner) const {
  multiply(dinner, Into::replace, dy, down_.value);
  for (Index i = 0; i < dy.rows; ++i)
    row_kernels<T>().swiglu_backward(saved.gate_up.row(i), saved.gate_up.row(i) + inner(), dinner.row(i), inner());
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
