// The flight recorder of one rank: the last events of all its communicators, always on.
//
//   Cost     one event of 40 bytes for an operation; for long ones another per 64 KiB that moved, and one per wait of a
//            millisecond. No lock, no allocation, no clock that was not read anyway.
//   Threads  written and read under the owner token.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.h"

namespace sluice::detail {

enum class TraceKind : std::uint8_t {
  none,
  turn,  // moved `bytes` since its last event
  wait,  // blocked on `peer` from here on, until the operation's next event
  done,  // posted at `posted_at`; `bytes` were sent
  failed,
};

struct TraceEvent {
  std::uint64_t at = 0;         // ticks
  std::uint64_t posted_at = 0;  // ticks
  std::uint64_t bytes = 0;
  std::uint32_t sequence = 0;      // of the operation in its communicator, cut to 32 bits; 0: send or receive
  Rank peer = -1;                  // in the communicator
  std::uint16_t communicator = 0;  // as Recorder::add said
  TraceKind kind = TraceKind::none;
  std::uint8_t operation = 0;  // OperationKind
};

class Recorder {
 public:
  static constexpr std::size_t kEvents = 4096;  // a power of two

  TraceEvent& next() { return events_[next_++ % kEvents]; }  // to be filled; every field
  // Oldest first.
  std::vector<TraceEvent> events() const;
  std::uint64_t recorded() const { return next_; }

 private:
  std::array<TraceEvent, kEvents> events_;
  std::uint64_t next_ = 0;
};

}  // namespace sluice::detail
