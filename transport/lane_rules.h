// A lane as the engine and the transports of one rank see it, and the two small machines that they serve lanes with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace sluice {

inline constexpr std::uint64_t kLaneFloor = std::uint64_t{1} << 20;  // keeps a lane alive

struct LaneRules {
  std::uint32_t number = 0;             // of the lane in its runtime: flows of one number share what the rules grant
  std::uint8_t priority = 0;            // as FlowId::lane: smaller is served first
  std::uint32_t weight = 1;             // of bytes, among lanes of one priority
  std::uint64_t min_rate = kLaneFloor;  // bytes per second, > 0, that the lane gets before more urgent ones get more
  std::uint64_t max_rate = 0;           // bytes per second; 0: no ceiling
  std::size_t in_flight = 0;  // bytes in the kernel of a link, where lanes compete for it; 0: by the transport
};

// Stride scheduling: of those who have something to move, whoever moved least by its weight is next.
class LaneShare {
 public:
  std::uint64_t moved() const { return moved_; }
  void charge(std::uint64_t bytes, std::uint32_t weight) { moved_ += bytes * kScale / weight; }
  // Had nothing to move until now, while the one that was served last had come to `moved`: who was away for long brings a small claim
  // from that time, who was away for a moment loses nothing.
  void catch_up(std::uint64_t moved, std::uint32_t weight) {
    if (moved <= moved_) return;
    const std::uint64_t claim = kClaim * kScale / weight;
    moved_ = std::max(moved_, moved > claim ? moved - claim : 0);
  }
  static constexpr std::uint64_t kClaim = 1 << 18;  // bytes

 private:
  static constexpr std::uint64_t kScale = 1024;
  std::uint64_t moved_ = 0;  // bytes by weight, scaled
};

// So many bytes per second, and at most `burst` at once. Spending is always possible and may run into debt; who asks first whether
// something is left exceeds the rate by one piece at most.
class TokenBucket {
 public:
  // rate > 0; burst > 0.
  TokenBucket(std::uint64_t rate, std::uint64_t burst) : rate_(rate), burst_(static_cast<std::int64_t>(burst)) {}

  bool any(Nanoseconds now) {
    refill(now);
    return tokens_ > 0;
  }
  void spend(std::uint64_t bytes, Nanoseconds now) {
    refill(now);
    tokens_ -= static_cast<std::int64_t>(bytes);
  }
  // For a guarantee: what a lane gets beyond it is a debt of one burst at most.
  void spend_of_guarantee(std::uint64_t bytes, Nanoseconds now) {
    spend(bytes, now);
    tokens_ = std::max(tokens_, -burst_);
  }
  // Until any().
  Nanoseconds wait(Nanoseconds now) {
    refill(now);
    if (tokens_ > 0) return Nanoseconds(0);
    const double seconds = static_cast<double>(1 - tokens_) / static_cast<double>(rate_);
    return Nanoseconds(static_cast<std::int64_t>(seconds * 1e9) + 1);
  }

 private:
  void refill(Nanoseconds now) {
    if (now <= last_) return;
    const double earned = static_cast<double>((now - last_).count()) * 1e-9 * static_cast<double>(rate_) + rest_;
    last_ = now;
    const double room = static_cast<double>(burst_ - tokens_);
    if (earned >= room) {
      tokens_ = burst_;
      rest_ = 0;
      return;
    }
    const auto whole = static_cast<std::int64_t>(earned);
    tokens_ += whole;
    rest_ = earned - static_cast<double>(whole);  // of a byte: short pauses lose nothing
  }

  std::uint64_t rate_;
  std::int64_t burst_;
  std::int64_t tokens_ = 0;
  double rest_ = 0;
  Nanoseconds last_{0};
};

}  // namespace sluice
