#include "comm/bootstrap/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <future>

namespace sluice {
namespace {

constexpr int kEventsPerRound = 64;

}  // namespace

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return system_error("the control plane can't open an epoll descriptor", errno);
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return system_error("the control plane can't open an eventfd", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = 0;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0)
    return system_error("the control plane can't watch its eventfd", errno);
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

std::uint64_t EventLoop::watch(int fd, std::uint32_t events, Ready ready) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = next_number_;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return 0;
  watches_.emplace(next_number_, std::make_shared<Ready>(std::move(ready)));
  return next_number_++;
}

void EventLoop::change(std::uint64_t watch, int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = watch;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void EventLoop::unwatch(std::uint64_t watch, int fd) {
  if (watches_.erase(watch) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

std::uint64_t EventLoop::after(Nanoseconds delay, Task task) {
  const Nanoseconds when = now() + delay;
  timers_.emplace(std::pair{when, next_number_}, std::move(task));
  timer_times_.emplace(next_number_, when);
  return next_number_++;
}

void EventLoop::cancel(std::uint64_t timer) {
  const auto found = timer_times_.find(timer);
  if (found == timer_times_.end()) return;
  timers_.erase({found->second, timer});
  timer_times_.erase(found);
}

bool EventLoop::post(Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  posted_.push_back(std::move(task));
  if (posted_.size() == 1) wake();
  return true;
}

void EventLoop::run_there(const Task& task) {
  std::promise<void> ran;
  const bool accepted = post([&] {
    task();
    ran.set_value();
  });
  if (accepted) ran.get_future().wait();
}

void EventLoop::stop() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  wake();
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  if (::write(wake_.get(), &one, sizeof one) < 0) return;  // its counter is full: the loop is awake anyway
}

void EventLoop::run() {
  std::array<epoll_event, kEventsPerRound> events{};
  while (!stopped()) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), kEventsPerRound, timeout_ms());
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const std::uint64_t id = event.data.u64;  // a copy: the structure is packed, its fields can't be referred to
      if (id == 0) {
        std::uint64_t ignored = 0;
        if (::read(wake_.get(), &ignored, sizeof ignored) > 0) run_posted();
      } else if (const auto found = watches_.find(id); found != watches_.end()) {
        const auto ready = found->second;
        (*ready)(event.events);
      }
    }
    run_timers();
    if (sweep_) sweep_();
  }
  run_posted();
}

bool EventLoop::stopped() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

int EventLoop::timeout_ms() const {
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first.first - now();
  if (left <= Nanoseconds(0)) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, 60'000));
}

void EventLoop::run_timers() {
  const Nanoseconds until = now();
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    const auto first = timers_.begin();
    const Task task = std::move(first->second);
    timer_times_.erase(first->first.second);
    timers_.erase(first);
    task();
  }
}

void EventLoop::run_posted() {
  {
    const std::lock_guard lock(mutex_);
    running_.swap(posted_);
  }
  for (const Task& task : running_) task();
  running_.clear();
}

}  // namespace sluice
