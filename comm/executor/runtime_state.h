// What a Runtime holds: control plane, transports, engine, and the registry of its communicators.
//
//   Order of ends  notices, engine's thread, control plane's thread, transports, control plane: nobody calls into what is gone.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "comm/bootstrap/control.h"
#include "comm/communicator.h"
#include "comm/executor/directory.h"
#include "comm/executor/engine.h"
#include "comm/lanes/lane_state.h"
#include "comm/trace/traces.h"
#include "comm/tune/tune.h"
#include "transport/transport.h"

namespace sluice::detail {

class CommunicatorState;
struct Identity;
class LoopGroup;
class ShrinkTable;

// A flow on which messages may not have been read yet.
struct SentOn {
  Rank world_peer = 0;
  OutFlow* flow = nullptr;
};

class RuntimeState : public std::enable_shared_from_this<RuntimeState> {
 public:
  struct Parts {
    Config config;
    std::unique_ptr<Control> control;
    std::vector<std::unique_ptr<Transport>> transports;  // most wanted first
    std::vector<Transport*> borrowed_transports;         // of a loop world, instead
    const Clock* clock = nullptr;
    std::shared_ptr<LoopGroup> loop;  // what clock and transports belong to, in a loop world; shared by its ranks
    Engine::Options engine;
    std::unique_ptr<const MachineFile> tuning;  // measured times; null: none
    std::vector<Lane> lanes;                    // of Setting::lanes
  };
  explicit RuntimeState(Parts parts);
  ~RuntimeState();

  const Config& config() const { return parts_.config; }
  const Clock& clock() const { return *parts_.clock; }
  Control& control() const { return *parts_.control; }
  Engine& engine() { return *engine_; }
  Rank world_rank() const { return parts_.control->rank(); }

  // The transport that carries traffic to a peer; unsupported when none reaches it.
  Result<Transport*> transport_to(Rank world_peer) const;
  // Of the weakest link among `members`, with what was measured of it, which all ranks see alike.
  LinkModel link_model(const std::vector<Rank>& members) const;
  bool left(Rank world_peer) const;  // it said goodbye
  std::set<Rank> gone_or_left() const;

  Communicator make_communicator(Identity identity);
  std::shared_ptr<CommunicatorState> make_state(Identity identity);
  // A communicator begins to end: no notice reaches it from here on.
  void unlist(std::uint64_t number, const CommunicatorState& communicator) { directory_.remove(number, communicator); }
  // It ended: its flows are closed once the peers have read what was sent on them.
  void forget(std::uint64_t communicator, std::vector<SentOn> sent_on);

  // With what Setting::lanes says of it. Errors: invalid_argument (this rank, field, value), of the lane as asked or as a whole.
  Result<Lane> complete_lane(const Lane& asked) const;
  LaneState& lane_state(const Lane& complete_lane);  // the same for equal lanes; lives as long as this
  std::vector<LaneCounters> lane_counters() const;

  void* allocate_window(std::size_t bytes, bool& shared);
  // After an error peers that have not heard of it may still write results to it: then it is kept for a while.
  void free_window(void* memory, bool shared);
  void note_broken() { broken_at_.store(clock().now().count(), std::memory_order_relaxed); }

  Traces& traces() { return traces_; }
  // Writes the flight recorder where Setting::trace says, the first time that operations fail. Under the token.
  void keep_trace(const std::string& why);
  Result<std::string> write_trace(const std::string& folder, const std::string& why);

  ShrinkTable& shrinks() { return *shrinks_; }
  Status check_not_forked() const;

 private:
  struct Draining {
    std::uint64_t communicator = 0;
    std::vector<SentOn> flows;
    Nanoseconds since{0};
  };
  bool is_read(const SentOn& sent) const;
  bool may_be_written(Nanoseconds now) const;
  void free_late_windows(Nanoseconds now);
  void drain(bool all);
  void linger();
  void on_notice(const Notice& notice);
  void on_abort(const Notice& notice);
  void on_peer_gone(const Notice& notice);
  std::vector<Transport*> transport_list() const;
  TraceDump trace(const std::string& why);
  void write_metrics(Nanoseconds now);

  Parts parts_;
  std::uint64_t fork_generation_;
  std::unique_ptr<ShrinkTable> shrinks_;
  Traces traces_;                    // under the owner token
  bool trace_kept_ = false;          // under the owner token
  Nanoseconds metrics_written_{0};   // under the owner token
  std::vector<Draining> draining_;   // under the owner token
  std::vector<void*> late_windows_;  // under the owner token
  std::atomic<std::int64_t> broken_at_{
      0};  // when a communicator of this rank last broke; 0: never. A hint for free_window
  Directory directory_;
  mutable std::mutex mutex_;
  std::map<Rank, std::string> gone_;                         // GUARDED_BY(mutex_): who died, and how
  std::map<Rank, std::string> left_;                         // GUARDED_BY(mutex_)
  std::deque<Notice> aborts_;                                // GUARDED_BY(mutex_): the last ones, of any communicator
  std::map<std::string, std::unique_ptr<LaneState>> lanes_;  // GUARDED_BY(mutex_); by the text of a complete lane
  std::unique_ptr<Engine> engine_;                           // last: its thread uses everything above
};

}  // namespace sluice::detail
