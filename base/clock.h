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

  // A cheaper now(), in a unit of its own, for spans that are only added up. Differences between cores can be off by a little.
  virtual std::uint64_t ticks() const { return static_cast<std::uint64_t>(now().count()); }
  virtual double seconds_per_tick() const { return 1e-9; }
};

// The machine's monotonic clock. Its ticks are the processor's time stamp counter where that runs at one rate.
class RealClock final : public Clock {
 public:
  Nanoseconds now() const override {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
  }
  std::uint64_t ticks() const override;
  double seconds_per_tick() const override;
  static RealClock& instance();

 private:
  RealClock();
  bool counter_ = false;
  Nanoseconds began_{0};
  std::uint64_t began_ticks_ = 0;
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
