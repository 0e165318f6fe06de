#include "layers/embedding.h"

#include <cmath>

#include "layers/batch.h"
#include "layers/compute/rows.h"

namespace sluice {

template <typename T>
void embed(const Weight<T>& table, std::span<const std::int32_t> tokens, View<T> out) {
  for (Index i = 0; i < out.rows; ++i) std::copy_n(table.value.row(tokens[i]), out.columns, out.row(i));
}

template <typename T>
void embed_backward(const Weight<T>& table, std::span<const std::int32_t> tokens, Read<T> dout) {
  for (Index i = 0; i < dout.rows; ++i) {
    T* to = table.gradient.row(tokens[i]);
    const T* from = dout.row(i);
    for (Index j = 0; j < dout.columns; ++j) to[j] += from[j];
  }
}

template <typename T>
double cross_entropy(View<T> logits, std::span<const std::int32_t> targets) {
  double loss = 0;
  for (Index i = 0; i < logits.rows; ++i) {
    const View<T> row = logits.row_range(i, 1);
    const std::int32_t target = targets[i];
    const T most = row_kernels<T>().largest(row.data, row.columns);
    const T seen = target == kNotCounted ? T{0} : row.data[target];
    softmax_rows(row);
    // p of the likeliest token is exp(0) / sum, so log(sum) = -log of it: no second pass over the row.
    const double log_sum = -std::log(static_cast<double>(row_kernels<T>().largest(row.data, row.columns)));
    if (target != kNotCounted) loss += log_sum + static_cast<double>(most) - static_cast<double>(seen);
  }
  return loss;
}

template <typename T>
void cross_entropy_backward(View<T> probabilities, std::span<const std::int32_t> targets, T scale) {
  for (Index i = 0; i < probabilities.rows; ++i) {
    T* row = probabilities.row(i);
    const T factor = targets[i] == kNotCounted ? T{0} : scale;
    for (Index j = 0; j < probabilities.columns; ++j) row[j] *= factor;
    if (targets[i] != kNotCounted) row[targets[i]] -= scale;
  }
}

template void embed(const Weight<float>&, std::span<const std::int32_t>, View<float>);
template void embed(const Weight<double>&, std::span<const std::int32_t>, View<double>);
template void embed_backward(const Weight<float>&, std::span<const std::int32_t>, Read<float>);
template void embed_backward(const Weight<double>&, std::span<const std::int32_t>, Read<double>);
template double cross_entropy(View<float>, std::span<const std::int32_t>);
template double cross_entropy(View<double>, std::span<const std::int32_t>);
template void cross_entropy_backward(View<float>, std::span<const std::int32_t>, float);
template void cross_entropy_backward(View<double>, std::span<const std::int32_t>, double);

}  // namespace sluice
