// The same members on other lanes: where the calls of a communicator run that name one (CallOptions::lane). Each is a communicator of its
// own, made at the first such call without a word to the others, since its number follows from the parent's and the lane.
//
//   Bounds   lanes of one name, priority and weight are one, with the bounds that the first call said.
//   Life     with the parent. What breaks one breaks the parent and all of them.
//   Threads  find() and clear() by the user thread of the parent; all() any that also holds off the end of one of them: by a turn, a watch
//            or a visit to the directory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "comm/lanes/lane.h"

namespace sluice::detail {

class CommunicatorState;

// Of what all members of a communicator must say alike.
std::uint64_t agreement_hash(const Lane& complete_lane);

class CallLanes {
 public:
  // Errors: invalid_argument, of the lane.
  Result<CommunicatorState*> find(CommunicatorState& parent, const Lane& asked);
  std::vector<CommunicatorState*> all() const;  // each once; they live until clear()
  void clear();

 private:
  std::shared_ptr<CommunicatorState> make(CommunicatorState& parent, const Lane& complete_lane,
                                          std::uint64_t agreed) const;

  // As asked, without bounds.
  struct Key {
    std::string name;
    std::optional<Priority> priority;
    std::optional<std::uint32_t> weight;
    bool is_of(const Lane& asked) const;
  };
  using Made = std::vector<std::pair<Key, std::shared_ptr<CommunicatorState>>>;  // nullptr: it is the parent's own

  mutable std::mutex mutex_;
  Made made_;  // GUARDED_BY(mutex_)
};

}  // namespace sluice::detail
