// The engine of one rank: every posted operation of every communicator, served slice by slice, most urgent lane first.
//
//   Driving  whoever holds the owner token runs pass(): new posts, a few turns, each of the communicator that is due (engine_turns.cpp),
//            the transports. A waiter drives until its operation is done; what nobody waits for is driven by the engine's thread.
//   Waiting  spin, yield, sleep; a sleeper does not keep the token. Nothing is waited for without a deadline: the watch of each communicator ends
//            operations that are stuck.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "comm/executor/alarms.h"
#include "comm/executor/onlookers.h"
#include "comm/executor/operation.h"
#include "comm/executor/owner_token.h"
#include "comm/lanes/lane_state.h"
#include "transport/transport.h"

namespace sluice::detail {

class CommunicatorState;

class Engine {
 public:
  struct Options {
    Nanoseconds spin{50'000};
    bool crowded = false;         // more ranks than cores on this host: yield instead of spinning
    bool thread = true;           // false: the loop world drives
    bool shares_network = false;  // with other ranks of this host, to other hosts
  };
  // Borrows the clock and the transports.
  Engine(const Clock& clock, std::vector<Transport*> transports, Options options);
  ~Engine();

  // True: it is done already, in order and without an error, and nobody refers to it. Otherwise one reference of it is taken until
  // it is done. Any thread, never blocks; where a peer's answer may be near it looks a few times.
  bool post(Operation* operation);
  // Drives until it is finished. Any thread.
  void wait(Operation& operation);
  // Drives once if nobody else does.
  void poll();
  void wake();  // whoever sleeps in this engine looks again; any thread

  // Runs `action` under the owner token.
  void with_token(const std::function<void()>& action);

  // For the loop world, which holds all ranks' engines in one thread: one pass, and the watch of stuck operations.
  std::size_t pass();
  void watch();
  // Called now and then under the token. Set before the first post.
  void keep_house(std::function<void()> housekeeping);
  void drive_with(std::function<void(Operation&)> driver) { driver_ = std::move(driver); }
  // The engine's thread runs on these cores too, and no longer on others than those that were named so. Any thread; not under the token.
  void pin(const Cores& cores);
  const Cores& allowed() const { return allowed_; }  // where its thread may run

  // When the first of the lanes may go on that wait for their ceilings. As of the last pass.
  std::optional<Nanoseconds> held_until() const { return held_until_; }

  const Clock& clock() const { return clock_; }
  bool crowded() const { return options_.crowded; }
  void remove(CommunicatorState& communicator);  // under the token

 private:
  static constexpr int kPriorities = kLanes;
  static constexpr std::uint8_t kNobody = 255;
  static constexpr int kStepsAlone = 64;   // steps of a turn when only one communicator has work
  static constexpr int kLooksAtPost = 24;  // about as long as a cache line needs to come from a peer that posts now

  using Active = std::vector<CommunicatorState*>;  // of one priority, with operations

  bool run_alone(Operation& operation);
  void admit(Operation* operation);
  void take_posts();
  bool turn_of_one();
  void show_urgency();
  void share_network();
  void make_way(std::size_t priority);
  bool makes_room(std::size_t priority, Nanoseconds now);
  bool make_room();
  void nap(int number);
  struct Driving {
    bool serving = false;
    std::uint8_t priority = kNobody;
  };
  Driving pause_driving();
  bool go_on_driving(Driving before);
  bool is_outranked(std::uint8_t priority) const;
  void tell_of_end(std::uint8_t priority);
  bool stand_back(const Operation& operation, std::uint8_t priority, Nanoseconds at_most);
  [[gnu::noinline]] UrgencyElsewhere urgency_elsewhere() const;  // not on the way of those who share nothing
  bool more_urgent_elsewhere(std::size_t priority) const {
    return options_.crowded && urgency_elsewhere().more_urgent(priority);
  }
  bool is_alone(const LaneState& only) const { return only.plain && !more_urgent_elsewhere(only.rules.priority); }
  bool turn_of_most_urgent(Nanoseconds now);
  bool turn_of_starving(Nanoseconds now);
  bool turn_alone(Active& lane);
  bool turn_of(Active& lane, std::size_t at, Nanoseconds now);
  void settle(Active& lane, std::size_t at, int finished, bool idle);
  void share_cores(const LaneState& state);
  template <typename Done>
  bool drive_until(const Done& done);  // under the token; false: another has it now
  bool spin();
  void watch_if_due(Nanoseconds now);
  bool idle(Nanoseconds& idle_since);
  void count_blocked(Nanoseconds time);
  bool may_yield(Nanoseconds idle_for);
  void yield();
  bool sleep(Nanoseconds at_most);
  void poll_descriptors(int alarm, Nanoseconds at_most) const;
  void wait_for_owner(Operation& operation, int round);
  // Something ended, or the token is free: whoever waits for an owner looks again. Missed at worst for kWaitForOwnerMax.
  void tell_waiters() {
    if (onlookers_.any()) wake_onlookers();
  }
  bool take_token() {
    if (!token_.try_take()) return false;
    if (prepared_) end_sleep();
    return true;
  }
  // Unless others still sleep: they are woken by what wakes a sleeper.
  void end_sleep();
  void wake_onlookers();
  void wake_waiters();
  void give_token() {
    token_.give();
    tell_waiters();
  }
  enum class Served : std::uint8_t { busy, sending, quiet, others };  // others: somebody else drives
  // Ticks of the engine's thread on end in which nothing was to do, others drove, the same wait of theirs went on.
  struct Lull {
    int quiet = 0;
    int others = 0;
    int same_wait = 0;
    std::uint32_t wait = 0;
  };
  Nanoseconds pause_after(Served served, Lull& lull);
  void serve();
  Served serve_once();
  bool unsent() const;
  bool take_turn_of_serving();
  bool is_for_here(const LaneState& state) const { return !state.pinned || serving_ || !options_.thread; }
  void wait_for_thread(Operation& operation);
  void call_thread();

  const Clock& clock_;
  std::vector<Transport*> transports_;
  Options options_;
  int spins_ = 0;          // quick looks between two passes
  int sleeps_due_ = 0;     // waits that sleep at once, for a yield took long
  int yields_due_ = 0;     // waits that yield at once, for yields showed that others want this core
  bool switched_ = false;  // the last yield did
  std::function<void(Operation&)> driver_;
  std::function<void()> housekeeping_;

  OwnerToken token_;
  Onlookers onlookers_;
  std::atomic<int> wanted_{0};  // of them, those that need it whatever becomes of operations: waiters make way too
  std::atomic<Operation*> posts_{nullptr};  // push: release, take all: acquire
  std::array<Active, kPriorities> active_;  // under the token
  std::size_t active_count_ = 0;
  std::array<std::uint64_t, kPriorities> served_{};  // LaneShare of the lane of each priority that was served last
  std::optional<Nanoseconds> held_until_;            // a lane waits for its ceiling
  bool shows_urgency_ = false;                       // to other ranks of this host
  ShownUrgency shown_;                               // what the other ranks of this host were shown last
  std::array<Nanoseconds, kPriorities>
      moved_at_{};  // when something of each priority last moved (crowded) or was posted
  std::array<std::uint64_t, kPriorities> begins_{};  // of what is more urgent than each, elsewhere, when last looked at
  std::array<Nanoseconds, kPriorities> begins_at_{};     // and when that changed
  std::array<std::atomic<int>, kPriorities> patient_{};  // waiters that stand back
  bool makes_room_ = false;  // something is held back for what is more urgent; as of the last pass
  int naps_ = 0;             // since something moved
  // What others of this host do with its network.
  struct Network {
    std::array<std::uint32_t, kLanes> begins{};
    std::array<Nanoseconds, kLanes> began_at{};  // each lane last
    NetworkClaim claim;                          // as the transports were told
  };
  Network network_;
  std::atomic<std::uint8_t> driving_{
      kNobody};  // the priority of the operation for which its waiter took the token; a hint
  Nanoseconds last_watch_{0};

  const Cores allowed_ = allowed_cores();  // as it was made
  bool thread_called_ = false;             // under the token; for a pinned lane, until it has the token
  bool serving_ = false;                   // under the token; the engine's thread has it
  std::atomic<int> pinned_{0};             // active communicators of lanes that are served by the engine's thread alone
  bool prepared_ = false;                  // under the token; a sleeper told the transports that it sleeps
  Alarms alarms_;                          // wake all that sleep, whoever took the transports' events
  std::mutex waiting_mutex_;               // between a waiter's last look and its sleep
  std::condition_variable waiting_;
  std::atomic<std::uint32_t> waits_{0};  // calls of wait(): a hint
  std::atomic<int> unfinished_{0};       // a hint for the engine's thread; orders nothing
  std::mutex mutex_;
  std::condition_variable serve_;
  std::atomic<bool> drowsy_{false};  // a hint: the engine's thread sleeps for long
  bool stop_ = false;                // GUARDED_BY(mutex_)
  Cores cores_;                      // GUARDED_BY(mutex_); of the thread; empty: any
  std::thread thread_;
};

}  // namespace sluice::detail
