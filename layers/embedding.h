// The embedding of tokens, and the cross-entropy at the other end.
//
//   Shapes   table [vocabulary, hidden]; logits [tokens, vocabulary]. No padding of the vocabulary.
//   Loss     ce = log(sum of exp(z_j)) - z_target, summed in double over the counted targets. It is divided by the number of
//            counted targets in the global batch, an integer summed over dp; never an average of averages.
#pragma once

#include <cstdint>
#include <span>

#include "layers/compute/gemm.h"
#include "layers/parameters.h"

namespace sluice {

template <typename T>
void embed(const Weight<T>& table, std::span<const std::int32_t> tokens, View<T> out);

// Adds to the table's gradient, in token order.
template <typename T>
void embed_backward(const Weight<T>& table, std::span<const std::int32_t> tokens, Read<T> dout);

// Sum of ce over the counted targets. Turns the logits into probabilities.
template <typename T>
double cross_entropy(View<T> logits, std::span<const std::int32_t> targets);

// Turns the probabilities left by cross_entropy into the logits' gradient of (sum of ce) * scale.
template <typename T>
void cross_entropy_backward(View<T> probabilities, std::span<const std::int32_t> targets, T scale);

}  // namespace sluice
