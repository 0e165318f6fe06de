// What a transport knows of its peers' health, and what other threads tell it about links. The two parts of a transport
// that are used outside of the owner token.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "base/unique_fd.h"
#include "transport/transport.h"

namespace sluice {

// Any thread.
class PeerTable {
 public:
  explicit PeerTable(int ranks) : broken_(static_cast<std::size_t>(ranks)), why_(static_cast<std::size_t>(ranks)) {}

  int ranks() const { return static_cast<int>(broken_.size()); }
  bool holds(Rank peer) const { return peer >= 0 && peer < ranks(); }
  bool broken(Rank peer) const { return broken_[static_cast<std::size_t>(peer)].load(std::memory_order_relaxed); }

  Status status(Rank peer) const {
    if (!holds(peer))
      return {Code::invalid_argument, "no rank " + std::to_string(peer) + " in a world of " + std::to_string(ranks())};
    if (!broken(peer)) return {};
    const std::lock_guard lock(mutex_);
    return why_[static_cast<std::size_t>(peer)];
  }
  // The first reason stays. True when this was it.
  bool mark(Rank peer, Status why) {
    const std::lock_guard lock(mutex_);
    if (broken(peer)) return false;
    why_[static_cast<std::size_t>(peer)] = std::move(why);
    broken_[static_cast<std::size_t>(peer)].store(
        true, std::memory_order_relaxed);  // orders nothing: why_ is read under the lock
    return true;
  }

 private:
  std::vector<std::atomic<bool>> broken_;
  mutable std::mutex mutex_;
  std::vector<Status> why_;  // guarded by mutex_
};

// Streams and failures on their way to the next progress(). put_* from any thread, the rest under the owner token.
class LinkInbox {
 public:
  struct Item {
    LinkId id;
    UniqueFd stream;  // empty: the peer failed
  };

  void put(LinkId id, UniqueFd stream) {
    const std::lock_guard lock(mutex_);
    items_.push_back({id, std::move(stream)});
    any_.store(true, std::memory_order_relaxed);
  }
  bool any() const { return any_.load(std::memory_order_relaxed); }  // a hint: the items come under the lock
  std::vector<Item> take() {
    const std::lock_guard lock(mutex_);
    any_.store(false, std::memory_order_relaxed);
    return std::exchange(items_, {});
  }

 private:
  std::atomic<bool> any_{false};
  std::mutex mutex_;
  std::vector<Item> items_;  // guarded by mutex_
};

}  // namespace sluice
