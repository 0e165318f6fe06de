// AdamW, the clipping of gradients by their global norm, and the learning rate's schedule.
//
//   State    two moments per element, laid out as the parameters are.
//   Norm     each logical element counts once: replicated tensors locally (every rank has the same sums), experts' tensors
//            summed over ep. Squares are summed in double.
//   Replicas ranks that hold the same parameters compute the same bits from the same sums; nothing is sent but the norm.
//   Source   Kingma, Ba, "Adam", 2015; Loshchilov, Hutter, "Decoupled Weight Decay Regularization", 2019.
#pragma once

#include <cstdint>

#include "layers/mesh.h"
#include "layers/parameters.h"

namespace sluice {

struct AdamwOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // of tensors whose spec says so
};

template <typename T>
class Adamw {
 public:
  Adamw(Parameters<T>& parameters, AdamwOptions options);

  // With gradients times `gradient_scale` (the clip factor). Then the gradients are zero again.
  void step(double learning_rate, double gradient_scale);
  std::int64_t steps() const { return steps_; }

 private:
  struct Moments {
    Matrix<T> first, second;
  };
  Parameters<T>& parameters_;
  AdamwOptions options_;
  std::array<Moments, kPlacements> moments_;
  std::int64_t steps_ = 0;
};

// sqrt of the sum of squares of all gradients. Collective over ep.
template <typename T>
Result<double> gradient_norm(const Parameters<T>& parameters, Mesh& mesh);

// min(1, limit / norm); 1 when limit is 0 (no clipping).
double clip_factor(double norm, double limit);

// Rises linearly over `warmup` steps, then falls as half a cosine to `floor` * peak at `steps`.
struct LearningRate {
  double peak = 3e-3;
  double floor = 0.1;
  std::int64_t warmup = 20;
  std::int64_t steps = 1000;
  double at(std::int64_t step) const;  // step >= 0
};

}  // namespace sluice
