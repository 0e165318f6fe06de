// What was flooded lately: drops what comes twice, and repeats to a new neighbour what it may have missed while the tree
// was torn.
//
//   Twice    each origin numbers its notices; streams keep order and a new neighbour is told the log before anything newer,
//            so whatever is not above the highest number seen from its origin has been seen.
//   Memory   at most kFloodLogBytes of encoded frames; the oldest are forgotten first. 8 bytes per rank.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/types.h"
#include "comm/bootstrap/messages.h"

namespace sluice {

inline constexpr std::size_t kFloodLogBytes = std::size_t{1} << 20;

// Shared: one encoding is queued on every link and kept in the log.
using SharedBytes = std::shared_ptr<const Bytes>;

class FloodLog {
 public:
  explicit FloodLog(int ranks, std::size_t bytes_max = kFloodLogBytes)
      : highest_(static_cast<std::size_t>(ranks), 0), bytes_max_(bytes_max) {}

  // The number of the next notice of `origin`, which is this rank.
  std::uint64_t next_sequence(Rank origin) const { return highest_[static_cast<std::size_t>(origin)] + 1; }
  // False: seen before. `origin` is a rank of the job.
  bool add(Rank origin, std::uint64_t sequence, SharedBytes frame);
  const std::deque<SharedBytes>& frames() const { return frames_; }

 private:
  std::vector<std::uint64_t> highest_;
  std::deque<SharedBytes> frames_;
  std::size_t bytes_ = 0;
  std::size_t bytes_max_;
};

}  // namespace sluice
