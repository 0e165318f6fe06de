// Causal self-attention with grouped queries: `heads` query heads share `kv_heads` key and value heads.
//
//   Shapes   x, y [tokens, hidden]; tokens = whole sequences of `sequence` rows one after another. Weights: q, k, v stacked
//            [(heads + 2 kv_heads) * width, hidden]; output [hidden, heads * width].
//   Cost     scores are computed in blocks of kQueryBlock query rows against the keys up to the block's end, so about
//            half of the square for long sequences. The probabilities are kept for the backward: tokens * heads *
//            sequence elements, which bounds the sequence length in practice.
//   Source   Vaswani et al., "Attention Is All You Need", 2017; Ainslie et al., "GQA", 2023.
#pragma once

#include "layers/compute/gemm.h"
#include "layers/parameters.h"
#include "layers/rotary.h"

namespace sluice {

struct AttentionShape {
  Index hidden = 0;
  Index heads = 0;
  Index kv_heads = 0;  // divides heads
  Index width = 0;     // of one head, even
};

template <typename T>
class Attention {
 public:
  static constexpr Index kQueryBlock = 64;

  struct Saved {
    Matrix<T> qkv;            // [tokens, (heads + 2 kv_heads) * width], after the rotation
    Matrix<T> probabilities;  // [sequences * heads * sequence, sequence], the part beyond a block's end unset
    Matrix<T> mixed;          // [tokens, heads * width], before the output weight
  };
  struct Scratch {
    Matrix<T> dqkv, dmixed, dscores;
  };

  Attention(AttentionShape shape, Weight<T> qkv, Weight<T> out, const Rotary<T>& rotary)
      : shape_(shape), qkv_(qkv), out_(out), rotary_(rotary) {}

  // Adds to y.
  void forward(Read<T> x, Index sequence, View<T> y, Saved& saved) const;
  // Adds to dx and to the weights' gradients.
  void backward(Read<T> x, Index sequence, Read<T> dy, View<T> dx, const Saved& saved, Scratch& scratch) const;

 private:
  // One query head of one sequence, with its keys and values; columns of qkv or of its gradient.
  struct Head {
    View<T> q, k, v;
    View<T> mixed;
    Index probability_row;
  };
  Head head(View<T> qkv, View<T> mixed, Index sequence, Index which, Index head) const;
  View<T> rotated(View<T> qkv) const { return qkv.column_range(0, (shape_.heads + shape_.kv_heads) * shape_.width); }
  T scale() const;

  AttentionShape shape_;
  Weight<T> qkv_;
  Weight<T> out_;
  const Rotary<T>& rotary_;
};

}  // namespace sluice
