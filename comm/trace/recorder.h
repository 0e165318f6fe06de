// The flight recorder of one rank: the last events of all its communicators, always on.
//
//   Cost     one event of 32 bytes for an operation; for long ones another per few slices (64 KiB at least), and one per wait of a
//            millisecond. No lock, no allocation, no clock that was not read anyway.
//   Threads  written and read under the owner token.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"
#include "comm/executor/fingerprint.h"
#include "comm/trace/wait_reason.h"

namespace sluice::detail {

enum class TraceKind : std::uint8_t {
  none,
  turn,  // moved `bytes` since its last event, up to `slice`
  wait,  // blocked from here on, until the operation's next event: in `slice`, on `peer`, for `reason`
  done,  // posted at `posted_at`; `bytes` were sent
  failed,
};

struct TraceEvent {
  std::uint64_t at = 0;            // ticks
  std::uint64_t posted_at = 0;     // ticks
  std::uint64_t detail = 0;        // done, failed: bytes. turn: slice, bytes. wait: slice, reason, peer
  std::uint32_t sequence = 0;      // of the operation in its communicator, cut to 32 bits; 0: send or receive
  std::uint16_t communicator = 0;  // as Traces::next_number said
  TraceKind kind = TraceKind::none;
  OperationKind operation = OperationKind::none;

  static std::uint64_t turn_detail(std::size_t slice, std::uint64_t bytes) {
    return (static_cast<std::uint64_t>(slice) << 32) | std::min<std::uint64_t>(bytes, 0xffffffffU);
  }
  static std::uint64_t wait_detail(std::size_t slice, WaitReason reason, Rank peer) {
    return (static_cast<std::uint64_t>(slice) << 32) | (static_cast<std::uint64_t>(reason) << 24) |
           (static_cast<std::uint64_t>(peer + 1) & 0xffffffU);
  }
  std::uint64_t bytes() const {
    return kind == TraceKind::wait ? 0 : kind == TraceKind::turn ? detail & 0xffffffffU : detail;
  }
  // -1: the whole operation.
  std::int64_t slice() const {
    return kind == TraceKind::wait || kind == TraceKind::turn ? static_cast<std::int64_t>(detail >> 32) : -1;
  }
  Rank peer() const { return kind == TraceKind::wait ? static_cast<Rank>(detail & 0xffffffU) - 1 : -1; }
  WaitReason reason() const {
    return kind == TraceKind::wait ? static_cast<WaitReason>((detail >> 24) & 0xffU) : WaitReason::nothing;
  }
};
static_assert(sizeof(TraceEvent) == 32);

class Recorder {
 public:
  static constexpr std::size_t kEvents = 4096;  // a power of two

  void add(const TraceEvent& event) { events_[next_++ % kEvents] = event; }
  // Oldest first.
  std::vector<TraceEvent> events() const;
  std::uint64_t recorded() const { return next_; }

 private:
  std::array<TraceEvent, kEvents> events_;
  std::uint64_t next_ = 0;
};

}  // namespace sluice::detail
