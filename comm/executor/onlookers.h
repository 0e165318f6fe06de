// How many threads wait for what the owner of an engine does, in one word: the owner looks at it often.
//
//   Waiters   want the token, or an operation that the owner drives, of some priority: the engine's thread makes way for them, and so does
//             who drives for something less urgent.
//   Sleepers  sleep on the transports' descriptors, without the token.
//   Patient   wait for an operation too, but leave it and the cores to who drives for something more urgent.
//   Threads   any; at most 1,023 waiters of a priority, 4,095 sleepers and 4,095 patient ones. A hint: it orders nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::detail {

class Onlookers {
 public:
  void begin_wait(std::uint8_t priority) { all_.fetch_add(one_of(priority), std::memory_order_relaxed); }
  void end_wait(std::uint8_t priority) { all_.fetch_sub(one_of(priority), std::memory_order_relaxed); }
  void begin_sleep() { all_.fetch_add(kSleeper, std::memory_order_relaxed); }
  void end_sleep() { all_.fetch_sub(kSleeper, std::memory_order_relaxed); }
  void begin_patience() { all_.fetch_add(kPatient, std::memory_order_relaxed); }
  void end_patience() { all_.fetch_sub(kPatient, std::memory_order_relaxed); }

  bool any() const { return all_.load(std::memory_order_relaxed) != 0; }
  bool drivers() const { return all_.load(std::memory_order_relaxed) % kPatient != 0; }  // waiters or sleepers
  bool waiters() const { return all_.load(std::memory_order_relaxed) % kSleeper != 0; }
  bool more_urgent(std::uint8_t priority) const { return all_.load(std::memory_order_relaxed) % one_of(priority) != 0; }
  bool sleepers() const { return all_.load(std::memory_order_relaxed) % kPatient >= kSleeper; }

 private:
  static constexpr int kBits = 10;
  static constexpr std::uint64_t kSleeper = std::uint64_t{1} << (4 * kBits);
  static constexpr std::uint64_t kPatient = kSleeper << 12;
  static constexpr std::uint64_t one_of(std::uint8_t priority) { return std::uint64_t{1} << (priority * kBits); }
  std::atomic<std::uint64_t> all_{0};
};

}  // namespace sluice::detail
