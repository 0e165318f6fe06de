// What a lane did, counted under the owner token and read from anywhere.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
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
  // An operation began `ticks` after it was posted.
  void add_queued(std::uint64_t ticks) { bump(queued_[static_cast<std::size_t>(std::bit_width(ticks))], 1); }
  void add_blocked(std::uint64_t nanoseconds) { bump(blocked_ns_, nanoseconds); }

  LaneCounters read(const Lane& lane, double seconds_per_tick) const {
    LaneCounters all{.lane = lane.name, .priority = *lane.priority};
    all.operations = operations_.load(std::memory_order_relaxed);
    all.bytes_sent = bytes_sent_.load(std::memory_order_relaxed);
    all.seconds_busy = static_cast<double>(busy_ticks_.load(std::memory_order_relaxed)) * seconds_per_tick;
    all.seconds_blocked = static_cast<double>(blocked_ns_.load(std::memory_order_relaxed)) * 1e-9;
    for (const auto& one : queued_) all.queued += one.load(std::memory_order_relaxed);
    all.queued_p50 = queued_percentile(all.queued, 0.5) * seconds_per_tick;
    all.queued_p99 = queued_percentile(all.queued, 0.99) * seconds_per_tick;
    return all;
  }

 private:
  // One writer at a time, so no read-modify-write is needed.
  static void bump(std::atomic<std::uint64_t>& counter, std::uint64_t by) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  // In ticks: the upper border of the class in which it lies.
  double queued_percentile(std::uint64_t all, double part) const {
    std::uint64_t until = 0;
    for (std::size_t width = 0; width < queued_.size(); ++width) {
      until += queued_[width].load(std::memory_order_relaxed);
      if (all != 0 && static_cast<double>(until) >= part * static_cast<double>(all))
        return std::ldexp(1.0, static_cast<int>(width));
    }
    return 0;
  }
  std::atomic<std::uint64_t> operations_{0};
  std::atomic<std::uint64_t> bytes_sent_{0};
  std::atomic<std::uint64_t> busy_ticks_{0};
  std::atomic<std::uint64_t> blocked_ns_{0};
  std::array<std::atomic<std::uint64_t>, 65> queued_{};  // by the bits of the ticks
  std::uint64_t counted_until_ = 0;                      // under the token; time before it is in busy_ticks_
};

}  // namespace sluice::detail
