// Rotary positions: each pair (x[i], x[i + d/2]) of a head of width d is turned by position * base^(-2i/d).
//
//   Shapes   rows are tokens, columns `heads` heads of `width` side by side, width even.
//   Position is the logical index in the sequence, so it does not depend on how a sequence is cut.
//   Source   Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
#pragma once

#include "layers/compute/gemm.h"

namespace sluice {

template <typename T>
class Rotary {
 public:
  // Tables for positions 0..length-1; angles are computed in double.
  Rotary(Index length, Index width, double base = 10000);

  // In place. Row i has position i % sequence; sequence <= length.
  void forward(View<T> x, Index sequence) const { turn(x, sequence, T{1}); }
  // The transpose of a rotation is the rotation back.
  void backward(View<T> dx, Index sequence) const { turn(dx, sequence, T{-1}); }

 private:
  void turn(View<T> x, Index sequence, T direction) const;

  Matrix<T> cosine_;  // [length, width / 2]
  Matrix<T> sine_;
};

}  // namespace sluice
