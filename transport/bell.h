// How a rank that sleeps is woken by whoever sends to it, at next to no cost while it is awake.
//
//   Race     the sleeper says that it sleeps and then looks once more; the waker sends and then looks whether it sleeps. One
//            of the two must see the other, which takes a barrier between write and look on both sides.
//   Barrier  the waker's is paid with every message, and waits until the cache line of the message is its own. So where
//            the system can do it (Linux: membarrier), the sleeper makes the cores of all wakers pass a barrier before its
//            last look, and the waker has none. Where it can't, each side has a fence.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr std::size_t kCacheLine = 64;

// Tells whether a rank sleeps. Lies in memory shared with the ranks that wake it.
struct Doorbell {
  alignas(kCacheLine)
      std::atomic<std::uint32_t> sleeping;  // 1 from before the sleeper's last look at its flows until it is woken
  std::atomic<std::uint32_t> barriers;  // 1: its owner makes wakers pass a barrier; set before anybody else knows of it
};

// How to wake a rank: where it says that it sleeps, and the eventfd that it sleeps on (of this process; the flow's
// transport owns it). An eventfd rather than a futex, for a rank may sleep on several transports and on sockets at
// once.
struct Bell {
  Doorbell* door = nullptr;  // nullptr: nobody to wake, the transport moves the flow itself
  int event_fd = -1;
  bool fences = true;  // false: the sleeper's barrier reaches this process
};
void ring_bell_slow(const Bell& bell);  // one write() for the first who finds the sleeper

// Can this process make others pass a barrier, and be made to? Asked of the system once. Any thread.
bool has_sleep_barrier();
// Before the sleeper's last look.
void sleep_barrier(const Bell& bell);

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wtsan"  // the sanitizer does not model the fence; it only decides who wakes, data goes by numbers and head
#endif
inline void sleep_fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

inline void ring_bell(const Bell& bell) {
  if (bell.door == nullptr) return;
  if (bell.fences)
    sleep_fence();
  else
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the compiler keeps the order, the sleeper's barrier the rest
  if (bell.door->sleeping.load(std::memory_order_relaxed) != 0) ring_bell_slow(bell);
}

}  // namespace sluice
