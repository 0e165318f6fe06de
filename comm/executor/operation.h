// A posted operation: what a Work holds and the engine advances.
//
//   Life     references: one of the engine's queue until it is done, one of the Work. The last gives it back to the
//            communicator's pool.
//   Threads  advance() and the time-keeping run under the owner token; finished(), status() and references from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "comm/executor/fingerprint.h"
#include "comm/executor/operation_pool.h"
#include "comm/executor/program_run.h"

namespace sluice::detail {

class CommunicatorState;

class Operation {
 public:
  Operation(CommunicatorState& communicator, std::shared_ptr<OperationPool> pool)
      : communicator_(&communicator), pool_(std::move(pool)) {}
  virtual ~Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // Runs without blocking until it would wait, `steps` steps ran or kTurnBytes were moved.
  virtual Advance advance(int steps) = 0;
  virtual bool ripe() = 0;                          // after `blocked`, a quick look: it can go on
  virtual Rank waiting_for() const = 0;             // rank in the communicator, -1: nobody
  virtual std::uint64_t progress_mark() const = 0;  // grows with everything that moves
  virtual std::uint64_t bytes_sent() const = 0;
  virtual std::uint64_t bytes_moved() const = 0;  // copied or combined here
  virtual std::size_t slice() const = 0;          // where it is
  virtual WaitReason waits_on() const = 0;        // after `blocked`
  // After `failed`: what is wrong, in words; digest faults are cleared up over the control tree and have no text.
  virtual std::string fault_text() const = 0;
  virtual void give_back() = 0;  // to its pool: the last reference is gone

  void prepare(const Fingerprint& fingerprint, Nanoseconds deadline, std::uint64_t now_ticks) {
    fingerprint_ = fingerprint;
    deadline_ = deadline;
    posted_at_ = now_ticks;
    traced_bytes_ = 0;
    moved_at_ = kNotLookedAt;
    next_arrival_ = Nanoseconds{0};
    arrival_pause_ = std::chrono::milliseconds(200);
    status_ = {};
    finished_.store(false, std::memory_order_relaxed);  // published by the post
    references_.store(2, std::memory_order_relaxed);
  }

  CommunicatorState& communicator() const { return *communicator_; }
  const Fingerprint& fingerprint() const { return fingerprint_; }
  Nanoseconds deadline() const { return deadline_; }
  // Of bytes_moved(), what the flight recorder knows.
  std::uint64_t& traced_bytes() { return traced_bytes_; }
  std::uint64_t posted_at() const { return posted_at_; }  // ticks

  // How long nothing has moved, as far as those know who look now and then.
  Nanoseconds stuck_for(Nanoseconds now) {
    if (const std::uint64_t mark = progress_mark(); mark != mark_ || moved_at_ == kNotLookedAt) {
      mark_ = mark;
      moved_at_ = now;
      wait_noted_ = false;
    }
    return now - moved_at_;
  }
  // It is held back here, so nobody else is to blame.
  void is_not_stuck(Nanoseconds now) { moved_at_ = now; }
  // Once for each time that it is stuck.
  bool take_wait_note() { return !std::exchange(wait_noted_, true); }
  // When to announce that we are stuck: at once, then after pauses that double (whoever knew nothing of the communicator
  // before may know it now).
  bool take_arrival_turn(Nanoseconds now) {
    if (now < next_arrival_) return false;
    arrival_pause_ = std::min<Nanoseconds>(arrival_pause_ * 2, std::chrono::seconds(10));
    next_arrival_ = now + arrival_pause_;
    return true;
  }

  void finish(Status status) {
    status_ = std::move(status);
    finished_.store(true, std::memory_order_release);  // -> finished(): status_ is there
  }
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  const Status& status() const { return status_; }

  void drop_reference() {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) give_back();
  }

  Operation* next = nullptr;  // in the engine's list of new posts, then in the queue of the communicator

 protected:
  // To the pool, which may go with its last operation.
  template <typename Kind>
  static void give_to_pool(Kind* operation) {
    const std::shared_ptr<OperationPool> pool = operation->pool_;
    pool->give(operation);
  }

 private:
  CommunicatorState* communicator_;
  std::shared_ptr<OperationPool> pool_;
  Fingerprint fingerprint_;
  Nanoseconds deadline_{0};
  static constexpr Nanoseconds kNotLookedAt{-1};
  std::uint64_t posted_at_ = 0;
  std::uint64_t traced_bytes_ = 0;
  Nanoseconds moved_at_ = kNotLookedAt;
  std::uint64_t mark_ = 0;
  bool wait_noted_ = false;
  Nanoseconds next_arrival_{0};
  Nanoseconds arrival_pause_{0};
  Status status_;
  std::atomic<bool> finished_{false};
  std::atomic<int> references_{0};
};

}  // namespace sluice::detail
