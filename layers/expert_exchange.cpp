#include "layers/expert_exchange.h"

#include <cstring>
#include <numeric>

namespace sluice {
namespace {

// A stable counting sort of the slots by expert.
std::vector<Index> sort_slots(const Routing& routing) {
  std::vector<Index> next(static_cast<std::size_t>(routing.experts), 0);
  for (std::size_t e = 1; e < next.size(); ++e) next[e] = next[e - 1] + routing.counts[e - 1];
  std::vector<Index> row(routing.expert.size());
  for (std::size_t slot = 0; slot < row.size(); ++slot)
    row[slot] = next[static_cast<std::size_t>(routing.expert[slot])]++;
  return row;
}

std::size_t sum(const std::int64_t* counts, Part part) {
  return static_cast<std::size_t>(
      std::accumulate(counts + part.first, counts + part.first + part.count, std::int64_t{0}));
}

// counts: [ranks, local experts], what each rank sends to each of my experts.
void lay_out_by_expert(const std::vector<std::int64_t>& counts, std::size_t ranks, std::size_t local,
                       DispatchPlan& plan) {
  plan.expert_begin.assign(local + 1, 0);
  for (std::size_t e = 0; e < local; ++e) {
    plan.expert_begin[e + 1] = plan.expert_begin[e];
    for (std::size_t r = 0; r < ranks; ++r) plan.expert_begin[e + 1] += counts[r * local + e];
  }
  plan.moves.clear();
  if (local <= 1 || ranks == 1) return;
  std::vector<Index> next(plan.expert_begin.begin(), plan.expert_begin.end() - 1);
  Index arrival = 0;
  for (std::size_t r = 0; r < ranks; ++r)
    for (std::size_t e = 0; e < local; ++e) {
      const Index rows = counts[r * local + e];
      if (rows > 0) plan.moves.push_back({arrival, next[e], rows});
      arrival += rows;
      next[e] += rows;
    }
}

template <typename T>
void copy_rows(T* to, const T* from, Index rows, Index columns) {
  std::memcpy(to, from, static_cast<std::size_t>(rows * columns) * sizeof(T));
}

void scale_counts(const std::vector<std::size_t>& rows, Index columns, std::vector<std::size_t>& elements) {
  elements.resize(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) elements[r] = rows[r] * static_cast<std::size_t>(columns);
}

}  // namespace

template <typename T>
ExpertExchange<T>::ExpertExchange(Communicator& group, int experts, Index hidden)
    : group_(group), experts_(experts), hidden_(hidden) {}

template <typename T>
Status ExpertExchange<T>::plan(const Routing& routing, DispatchPlan& plan) {
  const auto ranks = static_cast<std::size_t>(ranks_of(group_));
  const auto local = static_cast<std::size_t>(local_experts().count);
  std::vector<std::int64_t> counts(ranks * local);
  std::vector<std::size_t> experts_to(ranks), experts_from(ranks, local);
  plan.rows_to.resize(ranks);
  plan.rows_from.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    const Part part = part_of(experts_, static_cast<int>(r), static_cast<int>(ranks));
    experts_to[r] = static_cast<std::size_t>(part.count);
    plan.rows_to[r] = sum(routing.counts.data(), part);
  }

  Work exchange;
  if (alone())
    counts = routing.counts;
  else
    exchange = group_.all_to_all_v({routing.counts.data(), counts.data(), 0, DataType::int64}, {experts_to, {}},
                                   {experts_from, {}});
  plan.row_of_slot = sort_slots(routing);
  if (!alone()) SLUICE_TRY(exchange.wait());

  for (std::size_t r = 0; r < ranks; ++r)
    plan.rows_from[r] = sum(counts.data(), {static_cast<std::int64_t>(r * local), static_cast<std::int64_t>(local)});
  lay_out_by_expert(counts, ranks, local, plan);
  return {};
}

template <typename T>
void ExpertExchange<T>::post(const T* from, const std::vector<std::size_t>& to_counts, T* to,
                             const std::vector<std::size_t>& from_counts) {
  SLUICE_ASSERT(!under_way_, "an exchange of rows was begun before the last one was finished");
  under_way_ = true;
  scale_counts(to_counts, hidden_, send_elements_);
  scale_counts(from_counts, hidden_, receive_elements_);
  work_ = group_.all_to_all_v({from, to, 0, data_type_of<T>()}, {send_elements_, {}}, {receive_elements_, {}});
}

template <typename T>
void ExpertExchange<T>::begin_dispatch(const DispatchPlan& plan, Matrix<T>& sorted, Matrix<T>& by_expert) {
  if (alone()) return std::swap(sorted, by_expert);
  by_expert.shape(plan.arrived(), hidden_);
  const bool reorder = !plan.moves.empty();
  if (reorder) staging_.shape(plan.arrived(), hidden_);
  post(sorted.data(), plan.rows_to, reorder ? staging_.data() : by_expert.data(), plan.rows_from);
  to_reorder_ = reorder ? &plan : nullptr;
  target_ = &by_expert;
}

template <typename T>
void ExpertExchange<T>::begin_combine(const DispatchPlan& plan, Matrix<T>& by_expert, Matrix<T>& sorted) {
  if (alone()) return std::swap(sorted, by_expert);
  sorted.shape(static_cast<Index>(plan.row_of_slot.size()), hidden_);
  const bool reorder = !plan.moves.empty();
  if (reorder) staging_.shape(plan.arrived(), hidden_);
  for (const auto& move : plan.moves)
    copy_rows(staging_.row(move.arrival), by_expert.row(move.by_expert), move.rows, hidden_);
  post(reorder ? staging_.data() : by_expert.data(), plan.rows_from, sorted.data(), plan.rows_to);
  to_reorder_ = nullptr;
}

template <typename T>
Status ExpertExchange<T>::finish() {
  if (alone()) return {};
  SLUICE_ASSERT(under_way_, "an exchange of rows was finished before it was begun");
  under_way_ = false;
  SLUICE_TRY(work_.wait());
  if (to_reorder_ != nullptr)
    for (const auto& move : to_reorder_->moves)
      copy_rows(target_->row(move.by_expert), staging_.row(move.arrival), move.rows, hidden_);
  return {};
}

template class ExpertExchange<float>;
template class ExpertExchange<double>;

}  // namespace sluice
