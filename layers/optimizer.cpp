#include "layers/optimizer.h"

#include <cmath>
#include <numbers>

namespace sluice {
namespace {

template <typename T>
struct Factors {
  T keep1, take1, keep2, take2;  // beta and 1 - beta
  T step1;                       // learning rate / (1 - beta1^t)
  T unbias2;                     // 1 / (1 - beta2^t)
  T epsilon, decay, scale;
};

// One code path for every element: no reassociation, so a replica's bits do not depend on where a tensor begins.
template <typename T>
void update(const Factors<T>& f, Index count, T* value, T* gradient, T* first, T* second) {
  for (Index i = 0; i < count; ++i) {
    const T g = gradient[i] * f.scale;
    first[i] = f.keep1 * first[i] + f.take1 * g;
    second[i] = f.keep2 * second[i] + f.take2 * (g * g);
    value[i] -= f.step1 * first[i] / (std::sqrt(second[i] * f.unbias2) + f.epsilon) + f.decay * value[i];
    gradient[i] = 0;
  }
}

template <typename T>
double sum_of_squares(View<T> x) {
  constexpr Index kLanes = 8;
  double part[kLanes] = {};
  Index i = 0;
  for (; i + kLanes <= x.columns; i += kLanes)
    for (Index j = 0; j < kLanes; ++j)
      part[j] += static_cast<double>(x.data[i + j]) * static_cast<double>(x.data[i + j]);
  for (; i < x.columns; ++i) part[0] += static_cast<double>(x.data[i]) * static_cast<double>(x.data[i]);
  double sum = 0;
  for (const double p : part) sum += p;
  return sum;
}

}  // namespace

template <typename T>
Adamw<T>::Adamw(Parameters<T>& parameters, AdamwOptions options) : parameters_(parameters), options_(options) {
  for (std::size_t p = 0; p < kPlacements; ++p)
    for (Matrix<T>* moment : {&moments_[p].first, &moments_[p].second}) {
      moment->shape(1, parameters.count(static_cast<Placement>(p)));
      if (moment->size() > 0) moment->fill(0);
    }
}

template <typename T>
void Adamw<T>::step(double learning_rate, double gradient_scale) {
  ++steps_;
  const double t = static_cast<double>(steps_);
  Factors<T> factors{static_cast<T>(options_.beta1),
                     static_cast<T>(1 - options_.beta1),
                     static_cast<T>(options_.beta2),
                     static_cast<T>(1 - options_.beta2),
                     static_cast<T>(learning_rate / (1 - std::pow(options_.beta1, t))),
                     static_cast<T>(1 / (1 - std::pow(options_.beta2, t))),
                     static_cast<T>(options_.epsilon),
                     0,
                     static_cast<T>(gradient_scale)};
  for (const auto& tensor : parameters_.tensors()) {
    const Placement placement = tensor.spec.placement;
    const Moments& moments = moments_[static_cast<std::size_t>(placement)];
    factors.decay = tensor.spec.decays ? static_cast<T>(learning_rate * options_.weight_decay) : T{0};
    update(factors, tensor.spec.rows * tensor.spec.columns, parameters_.values(placement).data + tensor.offset,
           parameters_.gradients(placement).data + tensor.offset, moments.first.data() + tensor.offset,
           moments.second.data() + tensor.offset);
  }
}

template <typename T>
Result<double> gradient_norm(const Parameters<T>& parameters, Mesh& mesh) {
  double experts = sum_of_squares(parameters.gradients(Placement::by_expert));
  if (mesh.ep().valid())
    SLUICE_TRY(mesh.ep().all_reduce({&experts, &experts, 1, DataType::float64}, ReduceOp::sum).wait());
  return std::sqrt(sum_of_squares(parameters.gradients(Placement::replicated)) + experts);
}

double clip_factor(double norm, double limit) { return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0; }

double LearningRate::at(std::int64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  const double past =
      static_cast<double>(step - warmup) / static_cast<double>(std::max<std::int64_t>(1, steps - warmup));
  return peak * (floor + (1 - floor) * 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, past))));
}

template class Adamw<float>;
template class Adamw<double>;
template Result<double> gradient_norm(const Parameters<float>&, Mesh&);
template Result<double> gradient_norm(const Parameters<double>&, Mesh&);

}  // namespace sluice
