// The flight recorder of a runtime, and who its events speak of.
//
//   Threads  next_number() any, as communicators are made; the rest under the owner token.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>

#include "comm/trace/dump.h"
#include "comm/trace/recorder.h"

namespace sluice::detail {

class Traces {
 public:
  Recorder& recorder() { return recorder_; }
  std::uint16_t next_number() { return next_number_.fetch_add(1, std::memory_order_relaxed); }
  // A communicator ended; its events are still there.
  void retire(TraceCommunicator ended) {
    retired_.push_back(std::move(ended));
    if (retired_.size() > kRetiredMax) retired_.pop_front();
  }
  const std::deque<TraceCommunicator>& retired() const { return retired_; }

 private:
  static constexpr std::size_t kRetiredMax = 256;
  Recorder recorder_;
  std::deque<TraceCommunicator> retired_;
  std::atomic<std::uint16_t> next_number_{0};
};

}  // namespace sluice::detail
