#include "comm/executor/alarms.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/assert.h"

namespace sluice::detail {

Alarms::Sleeper::Sleeper(Alarms& alarms) : alarms_(alarms) {
  const std::lock_guard lock(alarms.mutex_);
  if (alarms.spare_.empty()) {
    fd_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    SLUICE_ASSERT(fd_, "an eventfd for whoever sleeps can be made");
  } else {
    fd_ = std::move(alarms.spare_.back());
    alarms.spare_.pop_back();
  }
  alarms.set_.push_back(fd_.get());
}

Alarms::Sleeper::~Sleeper() {
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
