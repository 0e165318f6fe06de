// The operations of one communicator that are not in use. A Work may outlive its communicator: then the pool is closed, and what
// comes back to it is deleted.
//
//   Threads  any. One operation of a kind that goes round and round costs no lock.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

namespace sluice::detail {

class CollectiveOperation;
class CommunicatorState;
class ReceiveOperation;
class SendOperation;

class OperationPool : public std::enable_shared_from_this<OperationPool> {
 public:
  OperationPool();
  ~OperationPool();
  OperationPool(const OperationPool&) = delete;
  OperationPool& operator=(const OperationPool&) = delete;

  template <typename Kind>
  Kind* take(CommunicatorState& communicator);
  template <typename Kind>
  void give(Kind* operation);
  void close();

 private:
  template <typename Kind>
  struct Spares {
    std::atomic<Kind*> first{nullptr};
    std::vector<std::unique_ptr<Kind>> rest;  // GUARDED_BY(mutex_)
  };
  template <typename Kind>
  Spares<Kind>& spares() {
    return std::get<Spares<Kind>>(spares_);
  }
  template <typename Kind>
  void keep(Kind* operation);
  template <typename Kind>
  void delete_spares();

  std::atomic<bool> closed_{false};
  std::mutex mutex_;
  std::tuple<Spares<CollectiveOperation>, Spares<SendOperation>, Spares<ReceiveOperation>> spares_;
};

}  // namespace sluice::detail
