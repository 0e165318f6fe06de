// A SwiGLU feed-forward layer: y = (silu(x * gate^T) o (x * up^T)) * down^T. One expert, or the shared one.
//
//   Shapes   x, y [tokens, hidden]; gate, up stacked [2 * inner, hidden]; down [hidden, inner]. Zero tokens are legal.
//   Split    the backward is cut into input and weight parts, so that the weight products can run while the input
//            gradients travel.
//   Source   Shazeer, "GLU Variants Improve Transformer", 2020.
#pragma once

#include "layers/compute/gemm.h"
#include "layers/parameters.h"

namespace sluice {

template <typename T>
class Swiglu {
 public:
  // Views of rows that the caller owns: experts share one matrix each, cut by rows.
  struct Saved {
    View<T> gate_up;  // [tokens, 2 * inner]: before the activation; its gradient after backward_input
    View<T> inner;    // [tokens, inner]
  };

  Swiglu(Weight<T> gate_up, Weight<T> down) : gate_up_(gate_up), down_(down) {}
  Index inner() const { return down_.value.columns; }

  void forward(Read<T> x, Into into, View<T> y, Saved saved) const;
  // Turns saved.gate_up into its gradient; dinner [tokens, inner] is scratch.
  void backward_input(Read<T> dy, Into into, View<T> dx, Saved saved, View<T> dinner) const;
  // After backward_input, of the same tokens. Adds to the weights' gradients.
  void backward_weight(Read<T> x, Read<T> dy, Saved saved) const;

 private:
  Weight<T> gate_up_;
  Weight<T> down_;
};

}  // namespace sluice
