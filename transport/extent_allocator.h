// Which parts of a range of bytes are taken: best fit, neighbours that become free are joined. Knows offsets only and
// touches no memory, so what a peer writes into a shared arena can't confuse it.
//
//   Cost     O(log n) in the number of free parts, and a look at further parts where alignment spoils a fit.
//   Threads  one at a time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace sluice {

class ExtentAllocator {
 public:
  static constexpr std::size_t kGrain = 64;  // sizes are rounded up to it; every offset is a multiple of it

  // Manages [0, bytes), rounded down to kGrain.
  explicit ExtentAllocator(std::size_t bytes);

  // The offset of `bytes` (0 counts as 1) free bytes; `alignment` a power of two. Empty: no part is large enough.
  std::optional<std::size_t> allocate(std::size_t bytes, std::size_t alignment = kGrain);
  // `offset` came from allocate(). Returns how many bytes became free.
  std::size_t free(std::size_t offset);

  std::size_t free_bytes() const { return free_bytes_; }
  std::size_t free_parts() const { return free_.size(); }

 private:
  void add_free(std::size_t offset, std::size_t bytes);
  void take_free(std::map<std::size_t, std::size_t>::iterator part);

  std::map<std::size_t, std::size_t> free_;                 // offset -> bytes, never two that touch
  std::set<std::pair<std::size_t, std::size_t>> by_bytes_;  // the same as (bytes, offset)
  std::map<std::size_t, std::size_t> taken_;                // offset -> bytes
  std::size_t free_bytes_ = 0;
};

}  // namespace sluice
