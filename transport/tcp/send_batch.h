// Frames on their way into a socket: gathered for one sendmsg(), and the rest of it kept when the socket took only a
// part.
//
//   Memory   payloads are borrowed until they are sent: own_rest() copies what is left when their memory has to go.
//   Threads  one at a time.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "transport/tcp/frame.h"

namespace sluice {

class SendBatch {
 public:
  static constexpr std::size_t kFramesMax = 64;
  static constexpr std::size_t kBytesMax = 1 << 18;

  bool empty() const { return first_ == count_; }
  bool full() const { return frames_ == kFramesMax || bytes_ >= kBytesMax; }

  // Only when !full().
  void add(const Frame& frame, std::span<const std::byte> payload);
  static constexpr std::size_t kAll = ~std::size_t{0};
  // Sends what the socket takes, of the first `most` bytes; the batch is empty when all is sent. False: the socket is full. Errors: peer_lost.
  Result<bool> send(int fd, std::size_t most);
  void own_rest();
  void clear();

 private:
  std::array<FrameBytes, kFramesMax> headers_;
  std::array<iovec, 2 * kFramesMax> parts_;
  std::size_t frames_ = 0;
  std::size_t bytes_ = 0;
  std::size_t first_ = 0;  // part that is sent next; parts_[first_] begins with its first unsent byte
  std::size_t count_ = 0;
  std::vector<std::byte> own_;
};

}  // namespace sluice
