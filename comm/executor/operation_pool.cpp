#include "comm/executor/operation_pool.h"

#include "comm/executor/collective_operation.h"

namespace sluice::detail {

OperationPool::~OperationPool() { delete_spare(); }

CollectiveOperation* OperationPool::take(CommunicatorState& communicator) {
  if (CollectiveOperation* spare = spare_.exchange(nullptr, std::memory_order_acquire); spare != nullptr) return spare;
  const std::lock_guard lock(mutex_);
  if (rest_.empty()) return new CollectiveOperation(communicator, shared_from_this());
  CollectiveOperation* operation = rest_.back().release();
  rest_.pop_back();
  return operation;
}

void OperationPool::give(CollectiveOperation* operation) {
  if (closed_) {
    delete operation;
    return;
  }
  if (CollectiveOperation* other = spare_.exchange(operation); other != nullptr) keep(other);
  if (closed_) delete_spare();  // meanwhile
}

void OperationPool::keep(CollectiveOperation* operation) {
  std::unique_ptr<CollectiveOperation> owned(operation);
  const std::lock_guard lock(mutex_);
  if (!closed_) rest_.push_back(std::move(owned));
}

void OperationPool::delete_spare() { const std::unique_ptr<CollectiveOperation> deleted(spare_.exchange(nullptr)); }

void OperationPool::close() {
  std::vector<std::unique_ptr<CollectiveOperation>> deleted;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    deleted.swap(rest_);
  }
  delete_spare();
}

}  // namespace sluice::detail
