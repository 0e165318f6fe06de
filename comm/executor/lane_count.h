// What a lane did, counted under the owner token and read from anywhere.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "comm/communicator.h"

namespace sluice::detail {

class LaneCount {
 public:
  // Operations of a lane may overlap; time is counted once.
  void add(std::uint64_t bytes_sent, Nanoseconds posted_at, Nanoseconds done_at) {
    bump(operations_, 1);
    bump(bytes_sent_, bytes_sent);
    const Nanoseconds busy = done_at - std::max(posted_at, counted_until_);
    if (busy.count() > 0) bump(busy_ns_, static_cast<std::uint64_t>(busy.count()));
    counted_until_ = std::max(counted_until_, done_at);
  }
  LaneCounters read(const std::string& lane) const {
    return {lane, operations_.load(std::memory_order_relaxed), bytes_sent_.load(std::memory_order_relaxed),
            static_cast<double>(busy_ns_.load(std::memory_order_relaxed)) * 1e-9};
  }

 private:
  // One writer at a time, so no read-modify-write is needed.
  static void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<std::uint64_t> busy_ns_{0};
  Nanoseconds counted_until_{0};  // under the token; time before it is in busy_ns_
};

}  // namespace sluice::detail
