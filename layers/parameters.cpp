#include "layers/parameters.h"

#include "base/assert.h"
#include "layers/initial_values.h"

namespace sluice {

template <typename T>
void Parameters<T>::begin_stage() {
  std::array<Index, kPlacements> begin{};
  for (std::size_t p = 0; p < kPlacements; ++p) begin[p] = arrays_[p].count;
  stages_.push_back(begin);
}

template <typename T>
ParameterId Parameters<T>::add(ParameterSpec spec) {
  SLUICE_ASSERT(!stages_.empty(), "a tensor was added before the first stage");
  Array& array = arrays_[static_cast<std::size_t>(spec.placement)];
  SLUICE_ASSERT(array.values.data() == nullptr, "a tensor was added after allocate()");
  const Index offset = array.count;
  array.count += spec.rows * spec.columns;
  tensors_.push_back({std::move(spec), offset});
  return tensors_.size() - 1;
}

template <typename T>
void Parameters<T>::allocate(std::uint64_t seed) {
  for (Array& array : arrays_) {
    array.values.shape(1, array.count);
    array.gradients.shape(1, array.count);
  }
  zero_gradients();
  for (std::size_t id = 0; id < tensors_.size(); ++id)
    set_initial_values(tensors_[id].spec.name, seed, tensors_[id].spec.spread, (*this)[id].value);
}

template <typename T>
Weight<T> Parameters<T>::operator[](ParameterId id) const {
  return stacked(id, 1);
}

template <typename T>
Weight<T> Parameters<T>::stacked(ParameterId first, std::size_t count) const {
  const Tensor& head = tensors_[first];
  const Array& array = arrays_[static_cast<std::size_t>(head.spec.placement)];
  const Index columns = head.spec.columns;
  Index rows = 0;
  for (std::size_t id = first; id < first + count; ++id) {
    const Tensor& tensor = tensors_[id];
    SLUICE_ASSERT(tensor.spec.columns == columns && tensor.offset == head.offset + rows * columns,
                  "stacked tensors must lie one after another");
    rows += tensor.spec.rows;
  }
  return {{array.values.data() + head.offset, rows, columns, columns},
          {array.gradients.data() + head.offset, rows, columns, columns}};
}

template <typename T>
Range Parameters<T>::stage(int stage, Placement placement) const {
  const auto p = static_cast<std::size_t>(placement);
  const auto s = static_cast<std::size_t>(stage);
  const Index end = s + 1 < stages_.size() ? stages_[s + 1][p] : arrays_[p].count;
  return {stages_[s][p], end - stages_[s][p]};
}

template <typename T>
void Parameters<T>::zero_gradients() {
  for (Array& array : arrays_)
    if (array.count > 0) array.gradients.fill(0);
}

template class Parameters<float>;
template class Parameters<double>;

}  // namespace sluice
