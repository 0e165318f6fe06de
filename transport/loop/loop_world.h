// The loop transport: all ranks in one thread, virtual time, seeded delays, and faults on demand.
//
//   Time     a message, or a released count on its way back, is under way for a seeded delay. Nothing moves by itself:
//            a rank's progress() takes what is due at its end, advance() and wait() move the clock.
//   Order    kept within a flow; flows overtake each other as the seed says.
//   Replay   the same seed and the same calls give the same deliveries at the same times: trace() is equal.
//   Windows  `windows`: what allocate_window gave is read in place; a message that describes it is delayed like any
//            other.
//   Threads  one, with all its ranks, the faults and the clock.
//
// A flow's messages start only when both halves are open, and are copied from the sender's ring to the receiver's when
// due.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "transport/transport.h"

namespace sluice {

struct LoopOptions {
  std::uint64_t seed = 1;
  Nanoseconds delay_min{500};  // delay_min <= delay_max
  Nanoseconds delay_max{5000};
  bool windows = true;
  // 0: every flow has slots of its own, as it must be. Otherwise all flows from one rank to another share so many: to show what that breaks.
  std::size_t shared_slots = 0;
};

class LoopWorld {
 public:
  explicit LoopWorld(int ranks, LoopOptions options = {});
  ~LoopWorld();
  LoopWorld(const LoopWorld&) = delete;
  LoopWorld& operator=(const LoopWorld&) = delete;

  int ranks() const { return static_cast<int>(endpoints_.size()); }
  Transport& transport(Rank rank);
  VirtualClock& clock() { return clock_; }

  // Moves the clock to the next event that lies ahead, but by at most `at_most`. False: nothing was under way to any
  // rank that lives, and the clock moved by `at_most`. What is due already waits for its rank's progress(); meanwhile
  // the clock goes on in steps of at most delay_max.
  bool advance(Nanoseconds at_most);
  // Messages, counts and losses under way to ranks that live.
  int pending() const;
  // A digest of everything that was delivered so far, and when.
  std::uint64_t trace() const { return trace_; }

  // The rank's traffic stops: nothing more leaves it, and of each flow what is under way arrives or is lost as the seed
  // says. Its peers' peer_status becomes peer_lost after a seeded delay of at most 1 s.
  void kill(Rank rank);
  // Nothing from it or to it moves any more, but it is not dead: no peer_status tells.
  void stall(Rank rank);
  // The link between the two is lost with all that is under way: both see peer_lost.
  void cut(Rank a, Rank b);
  // Flips the digest of the next message delivered from `from` to `to`.
  void corrupt_next(Rank from, Rank to);

 private:
  class Endpoint;
  struct Flow;
  enum class Kind : std::uint8_t { message, credit, loss };
  struct Event {
    Nanoseconds due{0};
    std::uint64_t tie = 0;       // seeded order among events of one time
    std::uint64_t sequence = 0;  // makes events unique
    Kind kind = Kind::message;
    Rank from = 0;
    Flow* flow = nullptr;        // not for loss
    std::uint64_t released = 0;  // credit
    bool operator<(const Event& other) const {
      return std::tie(due, tie, sequence) < std::tie(other.due, other.tie, other.sequence);
    }
  };
  struct FlowKey {
    Rank from = 0;
    Rank to = 0;
    FlowId id;
    auto operator<=>(const FlowKey&) const = default;
  };

  Nanoseconds delay();
  bool has_shared_slot(const FlowKey& key) const;
  Nanoseconds schedule(Rank to, Event event, Nanoseconds not_before);  // returns when it is due
  void lose(Rank at, Rank peer, Nanoseconds after, Status why);  // `at` learns after that time that `peer` is lost
  Flow* flow_between(const FlowKey& key);
  void drop_events_between(Rank a, Rank b);
  void drop_events_of(const Flow* flow);
  void note(const Event& event, std::uint64_t number);

  LoopOptions options_;
  VirtualClock clock_;
  Rng rng_;
  std::uint64_t sequence_ = 0;
  std::uint64_t trace_ = 0;
  std::vector<std::unique_ptr<Endpoint>> endpoints_;
  std::map<FlowKey, std::unique_ptr<Flow>> flows_;
  std::set<std::pair<Rank, Rank>> corrupt_;  // (from, to) of messages to be
};

}  // namespace sluice
