// Time as a parameter: the real one, or one that a test or the loop transport moves.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using Nanoseconds = std::chrono::nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Nanoseconds now() const = 0;  // since an arbitrary zero, never back; any thread
};

// The machine's monotonic clock.
class RealClock final : public Clock {
 public:
  Nanoseconds now() const override {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
  }
  static RealClock& instance();
};

// Moves only when told to. One thread.
class VirtualClock final : public Clock {
 public:
  Nanoseconds now() const override { return now_; }
  void advance(Nanoseconds by) { now_ += by; }
  void advance_to(Nanoseconds to) {
    if (to > now_) now_ = to;
  }

 private:
  Nanoseconds now_{0};
};

}  // namespace sluice
