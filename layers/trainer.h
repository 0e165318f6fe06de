// One training step and one evaluation, over the whole mesh.
//
//   Step     count tokens over dp (an integer), forward, backward with gradient sums posted stage by stage, clip, AdamW.
//   Loss     the sum of the cross-entropies over dp divided by the global token count; the same number at every rank.
//   Threads  every rank of the mesh calls the same functions in the same order.
//   Errors   what the communicators say; after one the parameters are undefined.
#pragma once

#include "layers/data_parallel.h"
#include "layers/model.h"
#include "layers/optimizer.h"

namespace sluice {

struct TrainOptions {
  AdamwOptions adamw;
  double clip = 1;  // limit of the gradients' norm; 0: none
  Order order = Order::fast;
};

struct StepResult {
  double loss = 0;  // nats per token, without the balance loss
  double balance_loss = 0;
  double gradient_norm = 0;  // before clipping
  std::int64_t tokens = 0;   // counted targets of the global batch
};

template <typename T>
class Trainer {
 public:
  // Both are borrowed.
  Trainer(Model<T>& model, Mesh& mesh, TrainOptions options);

  Result<StepResult> step(const Batch& batch, double learning_rate);
  // invalid_argument when no rank has a counted target.
  Result<double> evaluate(const Batch& batch);

 private:
  // What is being summed over dp. Not on the stack: after an error a sum may still be under way.
  struct Sums {
    std::int64_t tokens = 0;
    double losses[2] = {};  // cross-entropy, balance
  };
  Work sum_over_dp(void* values, std::size_t count, DataType type);

  Model<T>& model_;
  Mesh& mesh_;
  TrainOptions options_;
  GradientReducer<T> reducer_;
  Adamw<T> adamw_;
  Sums sums_;
};

}  // namespace sluice
