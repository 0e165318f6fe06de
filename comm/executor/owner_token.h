// Who drives an endpoint: a blocking caller, a waiter, or the engine's thread, one at a time.
#pragma once

#include <atomic>

namespace sluice::detail {

class OwnerToken {
 public:
  bool try_take() {
    return !taken_.exchange(true, std::memory_order_acquire);
  }                                                                      // <- give(): all that the last owner did
  bool taken() const { return taken_.load(std::memory_order_relaxed); }  // a hint
  void give() { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace sluice::detail
