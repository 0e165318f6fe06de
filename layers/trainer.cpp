#include "layers/trainer.h"

namespace sluice {

template <typename T>
Trainer<T>::Trainer(Model<T>& model, Mesh& mesh, TrainOptions options)
    : model_(model),
      mesh_(mesh),
      options_(options),
      reducer_(model.parameters(), mesh, options.order),
      adamw_(model.parameters(), options.adamw) {}

template <typename T>
Work Trainer<T>::sum_over_dp(void* values, std::size_t count, DataType type) {
  if (!mesh_.dp().valid()) return Work();
  CallOptions options;
  options.order = options_.order;
  return mesh_.dp().all_reduce({values, values, count, type}, ReduceOp::sum, options);
}

template <typename T>
Result<StepResult> Trainer<T>::step(const Batch& batch, double learning_rate) {
  sums_.tokens = batch.counted();
  Work counting = sum_over_dp(&sums_.tokens, 1, DataType::int64);
  SLUICE_TRY_ASSIGN(sums_.losses[0], model_.forward(batch, true));
  SLUICE_TRY(counting.wait());
  if (sums_.tokens == 0) return Error{Code::invalid_argument, "train: the global batch has no target to learn from"};

  SLUICE_TRY(model_.backward(batch, sums_.tokens, [this](int stage) { reducer_.stage_done(stage); }));
  sums_.losses[1] = model_.balance_loss(sums_.tokens);
  Work summing = sum_over_dp(sums_.losses, 2, DataType::float64);
  SLUICE_TRY(reducer_.wait());
  SLUICE_TRY_ASSIGN(const double norm, gradient_norm(model_.parameters(), mesh_));
  adamw_.step(learning_rate, clip_factor(norm, options_.clip));
  SLUICE_TRY(summing.wait());
  return StepResult{sums_.losses[0] / static_cast<double>(sums_.tokens), sums_.losses[1], norm, sums_.tokens};
}

template <typename T>
Result<double> Trainer<T>::evaluate(const Batch& batch) {
  sums_.tokens = batch.counted();
  Work counting = sum_over_dp(&sums_.tokens, 1, DataType::int64);
  SLUICE_TRY_ASSIGN(sums_.losses[0], model_.forward(batch, false));
  SLUICE_TRY(counting.wait());
  SLUICE_TRY(sum_over_dp(sums_.losses, 1, DataType::float64).wait());
  if (sums_.tokens == 0) return Error{Code::invalid_argument, "evaluate: there is no target to judge by"};
  return sums_.losses[0] / static_cast<double>(sums_.tokens);
}

template class Trainer<float>;
template class Trainer<double>;

}  // namespace sluice
