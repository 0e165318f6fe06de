// What crosses a TCP link: frames of a 32-byte header, little endian, and for messages their payload.
//
//   greeting   rank, ranks       the first frame each way
//   open       flow, shape       the receiver of the flow is there and grants `slots` messages
//   message    flow, number, digest, bytes, then the payload; number: 0, 1, 2, ... in the flow
//   credit     flow, number      the receiver has released so many of the flow's messages
//
// Pure: no socket here, so that every byte an enemy could send can be tried. What the numbers mean is checked by the
// transport, which knows its flows.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "base/types.h"
#include "transport/slot_ring.h"
#include "transport/transport.h"

namespace sluice {

inline constexpr std::size_t kFrameBytes = 32;
using FrameBytes = std::array<std::byte, kFrameBytes>;

enum class FrameKind : std::uint8_t { greeting, open, message, credit };

struct Frame {
  FrameKind kind = FrameKind::greeting;
  FlowId flow{};             // all but greeting
  std::uint64_t number = 0;  // message, credit
  std::uint32_t digest = 0;  // message
  std::uint32_t bytes = 0;   // message: of the payload
  RingShape shape{0, 0};     // open: passed check_shape
  std::uint32_t rank = 0;    // greeting
  std::uint32_t ranks = 0;   // greeting
  bool operator==(const Frame&) const = default;
};

FrameBytes encode(const Frame& frame);
// Errors: refused, saying what is wrong.
Result<Frame> decode_frame(std::span<const std::byte, kFrameBytes> bytes);

// Cuts a stream of bytes into frames. Payloads are read straight to where the caller wants them:
//   loop: readv(space()), filled(n), then next() until nothing:
//     header   frame() is there. After a message say where its payload goes: place_payload()
//     payload  all of it is there
class FrameDecoder {
 public:
  enum class Event : std::uint8_t { nothing, header, payload };

  FrameDecoder();

  // Where the next bytes from the wire go, in this order; the second part may be empty. Valid until filled().
  std::array<iovec, 2> space();
  void filled(std::size_t bytes);

  // Errors: refused; then the stream can't be read on.
  Result<Event> next();
  const Frame& frame() const { return frame_; }
  // frame().bytes bytes at `to`, which stays until the payload event; nullptr: thrown away. May be called again before
  // the payload is whole, for the part not read yet.
  void place_payload(std::byte* to) { payload_ = to; }

 private:
  static constexpr std::size_t kStagingBytes = 1 << 16;
  static constexpr std::size_t kLargePayload = 1 << 14;

  Frame frame_;
  bool in_payload_ = false;
  std::byte* payload_ = nullptr;  // of the whole payload
  std::size_t payload_done_ = 0;
  // Bytes read but not cut yet: headers and small payloads. After large payloads only a header is read ahead, so that
  // the next large one isn't copied.
  std::unique_ptr<std::byte[]> staging_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool large_ = false;
};

}  // namespace sluice
