// What a rank sleeps on: an epoll set with the rank's own eventfd in it, which other threads and ranks write to wake
// it.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

class Poller {
 public:
  static constexpr std::uint64_t kWakeTag = ~std::uint64_t{0};

  // Errors: system (descriptors).
  static Result<Poller> make();

  // `tag` comes back with the events of `fd`. Closing the descriptor removes it.
  Status add(int fd, std::uint32_t events, std::uint64_t tag);
  // How many of `events` were filled, at once or until `at_most` passed. A wake-up is one event with kWakeTag, once.
  std::span<epoll_event> wait(std::span<epoll_event> events, Nanoseconds at_most);

  int fd() const { return epoll_.get(); }
  int event_fd() const { return event_.get(); }  // writing 8 bytes wakes; non-blocking

 private:
  UniqueFd epoll_;
  UniqueFd event_;
};

timespec to_timespec(Nanoseconds at_most);  // negative: zero

}  // namespace sluice
