#include "layers/moe.h"

#include "layers/compute/rows.h"

namespace sluice {
namespace {

// sorted[row of slot] = x[token]
template <typename T>
void gather_slots(View<const T> x, const Routing& routing, const DispatchPlan& plan, View<T> sorted) {
  for (Index slot = 0; slot < routing.slots(); ++slot)
    std::copy_n(x.row(slot / routing.top_k), x.columns, sorted.row(plan.row_of_slot[static_cast<std::size_t>(slot)]));
}

// y[token] += sum over j of weight * result[row of slot], j ascending
template <typename T>
void combine_slots(View<const T> result, View<const T> weights, const DispatchPlan& plan, View<T> y) {
  const Index top_k = weights.columns;
  for (Index t = 0; t < y.rows; ++t)
    for (Index j = 0; j < top_k; ++j) {
      const T* from = result.row(plan.row_of_slot[static_cast<std::size_t>(t * top_k + j)]);
      const T weight = weights.row(t)[j];
      T* to = y.row(t);
      for (Index c = 0; c < y.columns; ++c) to[c] += weight * from[c];
    }
}

// The transpose of combine_slots: dresult[row of slot] = weight * dy[token], and dweight = <dy[token], result[row]>.
template <typename T>
void combine_slots_backward(View<const T> result, View<const T> weights, const DispatchPlan& plan, View<const T> dy,
                            View<T> dresult, View<T> dweights) {
  const Index top_k = weights.columns;
  for (Index t = 0; t < dy.rows; ++t)
    for (Index j = 0; j < top_k; ++j) {
      const Index row = plan.row_of_slot[static_cast<std::size_t>(t * top_k + j)];
      const T weight = weights.row(t)[j];
      T* to = dresult.row(row);
      for (Index c = 0; c < dy.columns; ++c) to[c] = weight * dy.row(t)[c];
      dweights.row(t)[j] = dot(dy.row(t), result.row(row), dy.columns);
    }
}

// The transpose of gather_slots: dx[token] += dsorted[row of slot], j ascending.
template <typename T>
void gather_slots_backward(View<const T> dsorted, Index top_k, const DispatchPlan& plan, View<T> dx) {
  for (Index t = 0; t < dx.rows; ++t)
    for (Index j = 0; j < top_k; ++j) {
      const T* from = dsorted.row(plan.row_of_slot[static_cast<std::size_t>(t * top_k + j)]);
      T* to = dx.row(t);
      for (Index c = 0; c < dx.columns; ++c) to[c] += from[c];
    }
}

}  // namespace

template <typename T>
typename Swiglu<T>::Saved Moe<T>::expert_rows(const Saved& saved, std::size_t expert) const {
  return {rows_of(saved.gate_up, saved, expert), rows_of(saved.inner, saved, expert)};
}

template <typename T>
View<T> Moe<T>::rows_of(const Matrix<T>& by_expert, const Saved& saved, std::size_t expert) const {
  const Index first = saved.plan.expert_begin[expert];
  return by_expert.view().row_range(first, saved.plan.expert_begin[expert + 1] - first);
}

template <typename T>
void Moe<T>::count_over_dp(Saved& saved) {
  saved.global_counts = saved.router.routing.counts;
  if (!dp_.valid()) return;
  std::vector<std::int64_t>& counts = saved.global_counts;
  saved.counting = dp_.all_reduce({counts.data(), counts.data(), counts.size(), DataType::int64}, ReduceOp::sum);
}

template <typename T>
void Moe<T>::run_experts(Saved& saved, Matrix<T>& result) const {
  result.shape(saved.plan.arrived(), saved.by_expert.columns());
  if (weights_.experts.empty()) return;
  const Index inner = weights_.experts.front().inner();
  saved.gate_up.shape(saved.plan.arrived(), 2 * inner);
  saved.inner.shape(saved.plan.arrived(), inner);
  for (std::size_t e = 0; e < weights_.experts.size(); ++e)
    weights_.experts[e].forward(rows_of(saved.by_expert, saved, e), Into::replace, rows_of(result, saved, e),
                                expert_rows(saved, e));
}

template <typename T>
void Moe<T>::run_shared(Read<T> x, View<T> y, Saved& saved) const {
  if (!weights_.shared) return;
  const Index inner = weights_.shared->inner();
  weights_.shared->forward(x, Into::add, y,
                           {saved.shared_gate_up.shape(x.rows, 2 * inner), saved.shared_inner.shape(x.rows, inner)});
}

template <typename T>
Status Moe<T>::forward(Read<T> x, bool training, View<T> y, Saved& saved, Scratch& scratch) {
  router_.forward(x, saved.router);
  if (training) count_over_dp(saved);
  SLUICE_TRY(exchange_.plan(saved.router.routing, saved.plan));
  gather_slots<T>(x, saved.router.routing, saved.plan, scratch.sorted.shape(saved.router.routing.slots(), x.columns));

  exchange_.begin_dispatch(saved.plan, scratch.sorted, saved.by_expert);
  run_shared(x, y, saved);
  SLUICE_TRY(exchange_.finish());
  run_experts(saved, scratch.by_expert);
  exchange_.begin_combine(saved.plan, scratch.by_expert, saved.result);
  SLUICE_TRY(exchange_.finish());
  combine_slots<T>(saved.result, saved.router.weights, saved.plan, y);
  return {};
}

template <typename T>
void Moe<T>::shared_backward(Read<T> x, Read<T> dy, View<T> dx, Saved& saved, Scratch& scratch) const {
  if (!weights_.shared) return;
  const typename Swiglu<T>::Saved rows{saved.shared_gate_up, saved.shared_inner};
  weights_.shared->backward_input(dy, Into::add, dx, rows, scratch.dinner.shape(x.rows, weights_.shared->inner()));
  weights_.shared->backward_weight(x, dy, rows);
}

template <typename T>
Status Moe<T>::backward(Read<T> x, Read<T> dy, double balance_factor, std::int64_t tokens, View<T> dx, Saved& saved,
                        Scratch& scratch) {
  if (dp_.valid()) SLUICE_TRY(saved.counting.wait());
  const View<T> dresult = scratch.sorted.shape(saved.router.routing.slots(), x.columns);
  const View<T> dweights = scratch.dweights.shape(x.rows, saved.router.routing.top_k);
  combine_slots_backward<T>(saved.result, saved.router.weights, saved.plan, dy, dresult, dweights);

  exchange_.begin_dispatch(saved.plan, scratch.sorted, scratch.by_expert);
  shared_backward(x, dy, dx, saved, scratch);
  SLUICE_TRY(exchange_.finish());

  scratch.dinput.shape(saved.plan.arrived(), x.columns);
  for (std::size_t e = 0; e < weights_.experts.size(); ++e) {
    const typename Swiglu<T>::Saved rows = expert_rows(saved, e);
    weights_.experts[e].backward_input(rows_of(scratch.by_expert, saved, e), Into::replace,
                                       rows_of(scratch.dinput, saved, e), rows,
                                       scratch.dinner.shape(rows.inner.rows, rows.inner.columns));
  }
  exchange_.begin_combine(saved.plan, scratch.dinput, scratch.sorted);
  for (std::size_t e = 0; e < weights_.experts.size(); ++e)
    weights_.experts[e].backward_weight(rows_of(saved.by_expert, saved, e), rows_of(scratch.by_expert, saved, e),
                                        expert_rows(saved, e));
  router_.backward(x, dweights, {balance_factor, tokens, &saved.global_counts}, dx, saved.router, scratch.dlogits);
  SLUICE_TRY(exchange_.finish());
  gather_slots_backward<T>(scratch.sorted, saved.router.routing.top_k, saved.plan, dx);
  return {};
}

template <typename T>
double Moe<T>::balance_loss(const Saved& saved, double factor, std::int64_t tokens) const {
  return router_.balance_loss(saved.router, {factor, tokens, &saved.global_counts});
}

template class Moe<float>;
template class Moe<double>;

}  // namespace sluice
