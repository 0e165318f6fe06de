// How many threads wait for what the owner of an engine does, in one word: the owner looks at it often.
//
//   Waiters   want the token, or an operation that the owner drives: the engine's thread makes way for them.
//   Sleepers  sleep on the transports' descriptors, without the token.
//   Threads   any. A hint: it orders nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::detail {

class Onlookers {
 public:
  void begin_wait() { all_.fetch_add(kWaiter, std::memory_order_relaxed); }
  void end_wait() { all_.fetch_sub(kWaiter, std::memory_order_relaxed); }
  void begin_sleep() { all_.fetch_add(kSleeper, std::memory_order_relaxed); }
  void end_sleep() { all_.fetch_sub(kSleeper, std::memory_order_relaxed); }

  bool any() const { return all_.load(std::memory_order_relaxed) != 0; }
  bool waiters() const { return all_.load(std::memory_order_relaxed) % kSleeper != 0; }
  bool sleepers() const { return all_.load(std::memory_order_relaxed) >= kSleeper; }

 private:
  static constexpr std::uint64_t kWaiter = 1;
  static constexpr std::uint64_t kSleeper = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> all_{0};
};

}  // namespace sluice::detail
