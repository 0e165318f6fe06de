#include "base/fork_guard.h"

#include <pthread.h>

#include <atomic>

namespace sluice {
namespace {

std::atomic<std::uint64_t> g_forks{0};  // relaxed: written by the only thread of a new child

void count_fork() { g_forks.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint64_t fork_generation() {
  static const int registered = pthread_atfork(nullptr, nullptr, count_fork);
  static_cast<void>(registered);
  return g_forks.load(std::memory_order_relaxed);
}

}  // namespace sluice
