#include "layers/attention.h"

#include <cmath>

#include "layers/compute/rows.h"

namespace sluice {
namespace {

// Row i of a block that starts at query `first` may see keys 0..first+i; the others get probability 0.
template <typename T>
void causal_softmax(View<T> scores, Index first) {
  for (Index i = 0; i < scores.rows; ++i) {
    const Index visible = first + i + 1;
    softmax_rows(View<T>{scores.row(i), 1, visible, scores.stride});
    std::fill(scores.row(i) + visible, scores.row(i) + scores.columns, T{0});
  }
}

}  // namespace

template <typename T>
T Attention<T>::scale() const {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(shape_.width)));
}

template <typename T>
typename Attention<T>::Head Attention<T>::head(View<T> qkv, View<T> mixed, Index sequence, Index which,
                                               Index head) const {
  const Index width = shape_.width;
  const Index kv = head / (shape_.heads / shape_.kv_heads);
  const View<T> rows = qkv.row_range(which * sequence, sequence);
  return {rows.column_range(head * width, width), rows.column_range((shape_.heads + kv) * width, width),
          rows.column_range((shape_.heads + shape_.kv_heads + kv) * width, width),
          mixed.row_range(which * sequence, sequence).column_range(head * width, width),
          (which * shape_.heads + head) * sequence};
}

template <typename T>
void Attention<T>::forward(Read<T> x, Index sequence, View<T> y, Saved& saved) const {
  const View<T> qkv = saved.qkv.shape(x.rows, qkv_.value.rows);
  const View<T> mixed = saved.mixed.shape(x.rows, shape_.heads * shape_.width);
  const View<T> probabilities = saved.probabilities.shape(x.rows * shape_.heads, sequence);
  multiply_by_transposed(qkv, Into::replace, x, qkv_.value);
  rotary_.forward(rotated(qkv), sequence);

  for (Index which = 0; which < x.rows / sequence; ++which)
    for (Index h = 0; h < shape_.heads; ++h) {
      const Head at = head(qkv, mixed, sequence, which, h);
      for (Index first = 0; first < sequence; first += kQueryBlock) {
        const Index rows = std::min(kQueryBlock, sequence - first);
        const Index keys = first + rows;
        const View<T> scores = probabilities.row_range(at.probability_row + first, rows).column_range(0, keys);
        multiply_by_transposed(scores, Into::replace, at.q.row_range(first, rows), at.k.row_range(0, keys), scale());
        causal_softmax(scores, first);
        multiply(at.mixed.row_range(first, rows), Into::replace, scores, at.v.row_range(0, keys));
      }
    }
  multiply_by_transposed(y, Into::add, mixed, out_.value);
}

template <typename T>
void Attention<T>::backward(Read<T> x, Index sequence, Read<T> dy, View<T> dx, const Saved& saved,
                            Scratch& scratch) const {
  const View<T> dmixed = scratch.dmixed.shape(x.rows, shape_.heads * shape_.width);
  const View<T> dqkv = scratch.dqkv.shape(x.rows, qkv_.value.rows);
  multiply(dmixed, Into::replace, dy, out_.value);
  multiply_transposed(out_.gradient, Into::add, dy, saved.mixed);
  zero(dqkv);

  for (Index which = 0; which < x.rows / sequence; ++which)
    for (Index h = 0; h < shape_.heads; ++h) {
      const Head at = head(saved.qkv, dmixed, sequence, which, h);
      const Head d = head(dqkv, dmixed, sequence, which, h);
      for (Index first = 0; first < sequence; first += kQueryBlock) {
        const Index rows = std::min(kQueryBlock, sequence - first);
        const Index keys = first + rows;
        const View<T> p = saved.probabilities.view().row_range(at.probability_row + first, rows).column_range(0, keys);
        const View<T> out = d.mixed.row_range(first, rows);
        const View<T> dscores = scratch.dscores.shape(rows, keys);
        multiply_transposed(d.v.row_range(0, keys), Into::add, p, out);
        multiply_by_transposed(dscores, Into::replace, out, at.v.row_range(0, keys));
        softmax_rows_backward(p, dscores, scale());
        multiply(d.q.row_range(first, rows), Into::add, dscores, at.k.row_range(0, keys));
        multiply_transposed(d.k.row_range(0, keys), Into::add, dscores, at.q.row_range(first, rows));
      }
    }

  rotary_.backward(rotated(dqkv), sequence);
  multiply(dx, Into::add, dqkv, qkv_.value);
  multiply_transposed(qkv_.gradient, Into::add, dqkv, x);
}

template class Attention<float>;
template class Attention<double>;

}  // namespace sluice
