// RMS normalisation: y = gain * x / sqrt(mean(x^2) + epsilon), row by row.
//
//   Shapes   x, y [tokens, hidden], gain [1, hidden].
//   Source   Zhang, Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019.
#pragma once

#include <vector>

#include "layers/compute/gemm.h"
#include "layers/parameters.h"

namespace sluice {

template <typename T>
class RmsNorm {
 public:
  struct Saved {
    std::vector<T> inverse_rms;  // per row
  };

  explicit RmsNorm(Weight<T> gain) : gain_(gain) {}

  void forward(Read<T> x, View<T> y, Saved& saved) const;
  // Adds to dx and to the gain's gradient. The sum over tokens runs in token order.
  void backward(Read<T> x, Read<T> dy, View<T> dx, const Saved& saved) const;

 private:
  Weight<T> gain_;
};

}  // namespace sluice
