// Records in both directions over one non-blocking Unix stream, with the descriptors that come with the greeting.
//
//   Sending  what the socket does not take at once waits here, in order; flush() goes on.
//   Threads  one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/shm/records.h"

namespace sluice {

class RecordStream {
 public:
  RecordStream() = default;
  explicit RecordStream(UniqueFd stream) : stream_(std::move(stream)) {}

  int fd() const { return stream_.get(); }
  explicit operator bool() const { return static_cast<bool>(stream_); }
  void close() { stream_.reset(); }

  // The first record; its descriptors are borrowed until flush() has sent it.
  void greet(const Record& greeting, std::array<int, 2> descriptors);
  void push(const Record& record);
  bool waiting() const { return sent_ < outgoing_.size(); }
  // Sends what the socket takes. True when it took something. Errors: peer_lost.
  Result<bool> flush();

  // The next whole record; empty: nothing more now. Errors: peer_lost (end of stream), refused (not a record, or
  // descriptors where none belong).
  Result<std::optional<Record>> next();
  // What came with the greeting: memory, then bell. Empty ones when none came.
  std::array<UniqueFd, 2> take_descriptors() { return std::exchange(received_, {}); }

 private:
  Result<bool> receive();

  UniqueFd stream_;
  std::vector<std::byte> outgoing_;
  std::size_t sent_ = 0;                           // of outgoing_
  std::optional<std::array<int, 2>> descriptors_;  // to go with the first byte
  std::array<std::byte, 32 * kRecordBytes> incoming_{};
  std::size_t begin_ = 0;  // of what was received and not taken yet
  std::size_t end_ = 0;
  std::array<UniqueFd, 2> received_;
  bool greeted_ = false;
};

}  // namespace sluice
