// The living communicators of a rank, by number, for the control plane's thread.
//
//   Owners   who visits owns nothing: the last owner of a communicator may end its whole runtime, which waits for the control
//            plane's thread, so that thread must never be it.
//   Threads  any. remove() returns when no visit is under way; a visit must not add or remove.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace sluice::detail {

class CommunicatorState;

class Directory {
 public:
  void add(std::uint64_t number, CommunicatorState& communicator) {
    const std::lock_guard lock(mutex_);
    living_[number] = &communicator;
  }
  void remove(std::uint64_t number, const CommunicatorState& communicator) {
    const std::lock_guard lock(mutex_);
    if (const auto at = living_.find(number); at != living_.end() && at->second == &communicator) living_.erase(at);
  }
  // Calls `visitor` for that communicator if it lives.
  template <typename Visitor>
  void visit(std::uint64_t number, const Visitor& visitor) const {
    const std::lock_guard lock(mutex_);
    if (const auto at = living_.find(number); at != living_.end()) visitor(*at->second);
  }
  template <typename Visitor>
  void visit_all(const Visitor& visitor) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [number, communicator] : living_) visitor(*communicator);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, CommunicatorState*> living_;  // GUARDED_BY(mutex_)
};

}  // namespace sluice::detail
