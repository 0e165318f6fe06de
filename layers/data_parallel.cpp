#include "layers/data_parallel.h"

#include <utility>

namespace sluice {

template <typename T>
void GradientReducer<T>::add(int stage, Placement placement, Communicator& group) {
  if (!group.valid()) return;
  Range& waiting = waiting_[static_cast<std::size_t>(placement)];
  const Range done = parameters_.stage(stage, placement);
  SLUICE_ASSERT(waiting.count == 0 || done.first + done.count == waiting.first, "stages are finished last first");
  waiting = {done.first, done.count + waiting.count};
  if (waiting.count == 0 || (waiting.count < bucket_elements_ && stage > 0)) return;
  T* sum = parameters_.gradients(placement).data + waiting.first;
  CallOptions options;
  options.order = order_;
  posted_.add(
      group.all_reduce({sum, sum, static_cast<std::size_t>(waiting.count), data_type_of<T>()}, ReduceOp::sum, options));
  waiting = {};
}

template <typename T>
void GradientReducer<T>::stage_done(int stage) {
  add(stage, Placement::replicated, mesh_.dp());
  add(stage, Placement::by_expert, mesh_.edp());
}

template <typename T>
Status GradientReducer<T>::wait() {
  return std::exchange(posted_, Group()).wait();
}

template class GradientReducer<float>;
template class GradientReducer<double>;

}  // namespace sluice
