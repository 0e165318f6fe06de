// The collective operations of one communicator that are not in use. A Work may outlive its communicator: then the pool is closed,
// and what comes back to it is deleted.
//
//   Threads  any. One operation that goes round and round costs no lock.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace sluice::detail {

class CollectiveOperation;
class CommunicatorState;

class OperationPool : public std::enable_shared_from_this<OperationPool> {
 public:
  OperationPool() = default;
  ~OperationPool();
  OperationPool(const OperationPool&) = delete;
  OperationPool& operator=(const OperationPool&) = delete;

  CollectiveOperation* take(CommunicatorState& communicator);
  void give(CollectiveOperation* operation);
  void close();

 private:
  void keep(CollectiveOperation* operation);
  void delete_spare();

  std::atomic<CollectiveOperation*> spare_{nullptr};
  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::vector<std::unique_ptr<CollectiveOperation>> rest_;  // GUARDED_BY(mutex_)
};

}  // namespace sluice::detail
