#include "comm/executor/alarms.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace sluice::detail {
namespace {

UniqueFd make_alarm() { return UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

}  // namespace

// One at least is there while descriptors are.
Alarms::Alarms() {
  if (UniqueFd first = make_alarm(); first) spare_.push_back(std::move(first));
}

Alarms::Sleeper::Sleeper(Alarms& alarms) : alarms_(alarms) {
  const std::lock_guard lock(alarms.mutex_);
  if (alarms.spare_.empty()) {
    fd_ = make_alarm();
  } else {
    fd_ = std::move(alarms.spare_.back());
    alarms.spare_.pop_back();
  }
  if (fd_) alarms.set_.push_back(fd_.get());
}

Alarms::Sleeper::~Sleeper() {
  if (!fd_) return;
  const std::lock_guard lock(alarms_.mutex_);
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd_.get(), &count, sizeof count);  // empty: it did not sound
  std::erase(alarms_.set_, fd_.get());
  alarms_.spare_.push_back(std::move(fd_));
}

void Alarms::sound() {
  const std::uint64_t one = 1;
  const std::lock_guard lock(mutex_);
  for (const int fd : set_) {
    [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);  // full: it sounds already
  }
}

}  // namespace sluice::detail
