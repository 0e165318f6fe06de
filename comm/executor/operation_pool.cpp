#include "comm/executor/operation_pool.h"

#include "comm/executor/collective_operation.h"
#include "comm/executor/point_to_point.h"

namespace sluice::detail {

OperationPool::OperationPool() = default;
OperationPool::~OperationPool() = default;

template <typename Kind>
Kind* OperationPool::take(CommunicatorState& communicator) {
  Spares<Kind>& kind = spares<Kind>();
  if (Kind* spare = kind.first.exchange(nullptr, std::memory_order_acquire); spare != nullptr) return spare;
  const std::lock_guard lock(mutex_);
  if (kind.rest.empty()) return new Kind(communicator, shared_from_this());
  Kind* operation = kind.rest.back().release();
  kind.rest.pop_back();
  return operation;
}

template <typename Kind>
void OperationPool::give(Kind* operation) {
  if (closed_) {
    delete operation;
    return;
  }
  if (Kind* other = spares<Kind>().first.exchange(operation); other != nullptr) keep(other);
  if (closed_) delete_spares<Kind>();  // meanwhile
}

template <typename Kind>
void OperationPool::keep(Kind* operation) {
  std::unique_ptr<Kind> owned(operation);
  const std::lock_guard lock(mutex_);
  if (!closed_) spares<Kind>().rest.push_back(std::move(owned));
}

template <typename Kind>
void OperationPool::delete_spares() {
  const std::unique_ptr<Kind> deleted(spares<Kind>().first.exchange(nullptr));
  std::vector<std::unique_ptr<Kind>> rest;
  const std::lock_guard lock(mutex_);
  rest.swap(spares<Kind>().rest);
}

void OperationPool::close() {
  closed_ = true;
  delete_spares<CollectiveOperation>();
  delete_spares<SendOperation>();
  delete_spares<ReceiveOperation>();
}

template CollectiveOperation* OperationPool::take<CollectiveOperation>(CommunicatorState&);
template SendOperation* OperationPool::take<SendOperation>(CommunicatorState&);
template ReceiveOperation* OperationPool::take<ReceiveOperation>(CommunicatorState&);
template void OperationPool::give(CollectiveOperation*);
template void OperationPool::give(SendOperation*);
template void OperationPool::give(ReceiveOperation*);

}  // namespace sluice::detail
