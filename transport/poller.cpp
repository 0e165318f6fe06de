#include "transport/poller.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace sluice {

Result<Poller> Poller::make() {
  Poller made;
  made.epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!made.epoll_) return system_error("epoll_create1", errno);
  made.event_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made.event_) return system_error("eventfd", errno);
  // Edge triggered: every write is one event, and nobody has to read the counter.
  SLUICE_TRY(made.add(made.event_.get(), EPOLLIN | EPOLLET, kWakeTag));
  return made;
}

Status Poller::add(int fd, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return system_error("epoll_ctl", errno);
  return {};
}

std::span<epoll_event> Poller::wait(std::span<epoll_event> events, Nanoseconds at_most) {
  const int most = static_cast<int>(events.size());
  int filled = 0;
  if (at_most.count() <= 0) {
    filled = ::epoll_wait(epoll_.get(), events.data(), most, 0);
  } else {
    const timespec timeout = to_timespec(at_most);
    filled = ::epoll_pwait2(epoll_.get(), events.data(), most, &timeout, nullptr);
    if (filled < 0 && errno == ENOSYS) {  // Linux before 5.11
      const auto ms = std::min<std::int64_t>((at_most.count() + 999'999) / 1'000'000, 1 << 30);
      filled = ::epoll_wait(epoll_.get(), events.data(), most, static_cast<int>(ms));
    }
  }
  return events.first(static_cast<std::size_t>(std::max(filled, 0)));  // a signal is an early return
}

timespec to_timespec(Nanoseconds at_most) {
  const std::int64_t count = std::max<std::int64_t>(at_most.count(), 0);
  return {static_cast<time_t>(count / 1'000'000'000), static_cast<long>(count % 1'000'000'000)};
}

}  // namespace sluice
