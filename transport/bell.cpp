#include "transport/bell.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sluice {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool has_sleep_barrier() {
  // A process that is forked off registers for itself.
  static const pid_t first = ::getpid();
  static const bool registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return first == ::getpid() ? registered : membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

void sleep_barrier(const Bell& bell) {
  if (bell.fences || !membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) sleep_fence();
}

void ring_bell_slow(const Bell& bell) {
  if (bell.door->sleeping.exchange(0, std::memory_order_relaxed) == 0) return;  // another waker was first
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the sleeper is awake.
  [[maybe_unused]] const ssize_t written = ::write(bell.event_fd, &one, sizeof one);
}

}  // namespace sluice
