// What a lane did, counted under the owner token and read from anywhere.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "comm/communicator.h"

namespace sluice::detail {

class LaneCount {
 public:
  // Times are ticks of the runtime's clock. Operations of a lane may overlap; time is counted once.
  void add(std::uint64_t bytes_sent, std::uint64_t posted_at, std::uint64_t done_at) {
    bump(operations_, 1);
    bump(bytes_sent_, bytes_sent);
    const std::uint64_t from = std::max(posted_at, counted_until_);
    if (done_at <= from) return;
    bump(busy_ticks_, done_at - from);
    counted_until_ = done_at;
  }
  LaneCounters read(const std::string& lane, double seconds_per_tick) const {
    return {lane, operations_.load(std::memory_order_relaxed), bytes_sent_.load(std::memory_order_relaxed),
            static_cast<double>(busy_ticks_.load(std::memory_order_relaxed)) * seconds_per_tick};
  }

 private:
  // One writer at a time, so no read-modify-write is needed.
  static void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<std::uint64_t> busy_ticks_{0};
  std::uint64_t counted_until_ = 0;  // under the token; time before it is in busy_ticks_
};

}  // namespace sluice::detail
