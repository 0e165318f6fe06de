// What a Communicator holds: members, flows, programs, the queue of posted operations, and what broke it.
//
//   Threads  post() by the communicator's one user thread; enqueue(), turn(), watch(), fail_all() under the owner token;
//            on_notice() on the control plane's thread; break_with() and status() from any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "comm/algorithms/algorithms.h"
#include "comm/bootstrap/control.h"
#include "comm/communicator.h"
#include "comm/executor/call_lanes.h"
#include "comm/executor/collective_operation.h"
#include "comm/executor/history.h"
#include "comm/executor/messages.h"
#include "comm/executor/operation_pool.h"
#include "comm/executor/plan.h"
#include "comm/lanes/lane_state.h"
#include "comm/trace/dump.h"

namespace sluice::detail {

class RuntimeState;

struct Identity {
  std::uint64_t id = 0;
  std::string name;
  Lane lane;
  std::vector<Rank> members;  // world ranks, by rank
  Rank rank = 0;
  Nanoseconds deadline{0};
  CommunicatorState* parent = nullptr;  // of a lane that calls named
};

class CommunicatorState {
 public:
  CommunicatorState(std::shared_ptr<RuntimeState> runtime, Identity identity);
  ~CommunicatorState();

  Rank rank() const { return identity_.rank; }
  int ranks() const { return static_cast<int>(identity_.members.size()); }
  Rank world_rank(Rank rank) const { return identity_.members[static_cast<std::size_t>(rank)]; }
  std::optional<Rank> rank_of_world(Rank world_rank) const;
  const Identity& identity() const { return identity_; }
  const Lane& lane() const { return identity_.lane; }  // complete
  LaneState& lane_state() const { return lane_; }
  RuntimeState& runtime() const { return *runtime_; }
  const std::shared_ptr<RuntimeState>& shared_runtime() const { return runtime_; }

  // Where a call runs that names a lane. Errors: invalid_argument; what broke or closed this.
  Result<CommunicatorState*> of_lane(const Lane& asked) { return call_lanes_.find(*this, asked); }
  Work post(const Call& call, const CallOptions& options);
  Work post_send(const void* data, std::size_t count, DataType type, Rank to, const CallOptions& options);
  Work post_receive(void* data, std::size_t count, DataType type, Rank from, const CallOptions& options);

  // Of this and of the lanes that its calls named. The first error wins; later ones are dropped. `tell`: floods it to the other members.
  void break_with(const Status& why, bool tell);
  bool mark_broken(const Status& why);  // this one alone; false: it was
  // Nothing may be called any more. Errors: what broke it; invalid_argument (closed, forked).
  Status check_callable() const;
  // Every communicator that has run a collective here: this, and those of the lanes that calls named.
  std::vector<CommunicatorState*> used();
  Status status() const;
  bool broken() const { return broken_.load(std::memory_order_acquire); }
  void mark_closed();  // with the lanes that its calls named
  bool closed() const { return closed_; }
  void mark_shrunk() { shrunk_ = true; }
  bool shrunk() const { return shrunk_; }
  std::uint64_t next_split() { return ++splits_; }
  std::uint8_t* barrier_byte() { return &barrier_byte_; }
  std::size_t streams_from() const { return stream_from_; }  // bytes of one rank's buffers
  bool leaves_host() const { return leaves_host_; }          // it has members that only a network reaches

  // For the engine.
  bool enqueue(Operation* operation);  // true: this communicator had nothing to do before
  struct Turn {                        // small enough for a register
    bool moved = false;
    bool idle = false;
    int finished = 0;
  };
  struct Moved {  // bytes
    std::uint64_t sent = 0;
    std::uint64_t here = 0;
  };
  Turn turn(int steps, Moved* moved);           // `moved`: added to; nullptr: not counted
  bool count_done(const Operation& operation);  // true
  bool ripe();                                  // a quick look: a turn may move something
  void watch(Nanoseconds now);
  int fail_all();

  TraceCommunicator describe(Nanoseconds now);  // under the token

  // From the control plane.
  // `waits`: for whom that rank waits, in words; `fingerprints`: the present one first.
  void on_arrival(Rank world_rank, const std::string& waits, const std::vector<Fingerprint>& fingerprints);
  void on_abort(const Notice& notice);
  void on_peer_lost(Rank world_rank, const std::string& how);

 private:
  struct ProgramKey {
    Collective collective;
    Rank root;
    Order order;
    bool in_place;
    const Algorithm* algorithm;
    auto operator<=>(const ProgramKey&) const = default;
  };
  struct Arrival {
    Fingerprint print;
    std::string waits;
  };
  Result<const Algorithm*> choose(const Call& call, Order order, const std::string& forced);
  Result<BoundProgram*> program(const ProgramKey& key);
  std::vector<bool> window_peers() const;
  std::size_t stream_from() const;
  std::size_t describe_from(const Program& program) const;
  Result<Plan*> plan_of(const Call& call, const CallOptions& options);
  Status complete(Plan& plan, const Call& call, bool in_place);
  Result<Plan*> make_plan(const Call& call, const CallOptions& options, const PlanKey& key);
  FlowId flow_id(std::uint8_t channel) const { return {identity_.id, lane_.rules.priority, channel}; }
  Result<OutFlow*> out_flow(Rank peer, std::uint8_t channel);
  Result<InFlow*> in_flow(Rank peer, std::uint8_t channel);
  template <typename Message, typename Data>
  Work submit_message(Data* data, std::size_t count, DataType type, MessagePeer& peer, const CallOptions& options);
  Result<CollectiveOperation*> prepare(const Call& call, const CallOptions& options);
  Nanoseconds deadline_of(const CallOptions& options) const;
  std::size_t slice_bytes(const Call& call, int chunks) const;
  Work submit(Operation* operation);
  void remember(const Fingerprint& fingerprint);
  void compare_arrivals(const Fingerprint& fingerprint);

  void turn_of(OperationQueue& queue, int steps, Moved* moved, Turn& result);
  void turn_of_messages(int steps, Moved* moved, Turn& result);
  void match_own_messages(Turn& result);
  void finish(Operation* operation, Status status);
  void note(const Operation& operation, TraceKind kind, std::uint64_t detail, std::uint64_t now) {
    const Fingerprint& print = operation.fingerprint();
    recorder_.add({now, operation.posted_at(), detail, static_cast<std::uint32_t>(print.sequence), trace_number_, kind,
                   print.kind});
  }
  void note_turn(Operation& operation);
  void note_wait(const Operation& operation, WaitReason reason);
  void fault(Operation& operation);
  void announce(const Operation& operation);
  void disagree(const Fingerprint& print, const std::string& difference);
  void watch_operation(Operation& operation, Nanoseconds now);
  void time_out(Operation& operation, Nanoseconds stuck);
  std::string title(const Operation& operation) const;
  std::string who_waits(const Operation& operation) const;

  std::shared_ptr<RuntimeState> runtime_;  // shared: handles and Works may outlive the Runtime
  Identity identity_;
  LaneState& lane_;
  Recorder& recorder_;
  std::uint16_t trace_number_;
  std::uint64_t sequence_ = 0;
  std::uint64_t splits_ = 0;
  bool closed_ = false;
  bool shrunk_ = false;
  std::uint8_t barrier_byte_ = 0;
  Fingerprint message_print_;
  std::uint32_t message_digest_ = 0;
  std::size_t stream_from_ = 0;  // bytes of one rank's buffers
  bool leaves_host_ = false;
  std::size_t slice_bytes_min_ =
      0;  // what the link carries in twice its latency: smaller slices cost more than they overlap
  std::map<ProgramKey, std::unique_ptr<BoundProgram>> programs_;
  PlanCache plans_;
  std::shared_ptr<OperationPool> pool_ = std::make_shared<OperationPool>();
  std::map<std::pair<Rank, std::uint8_t>, OutFlow*> out_flows_;
  std::map<std::pair<Rank, std::uint8_t>, InFlow*> in_flows_;
  CallLanes call_lanes_;

  // Under the owner token.
  OperationQueue collectives_;
  Messages messages_;
  bool active_ = false;
  std::optional<Nanoseconds> disputed_since_;

  mutable std::mutex mutex_;
  Status status_;                     // GUARDED_BY(mutex_)
  std::map<Rank, Arrival> arrivals_;  // GUARDED_BY(mutex_): latest of each rank
  History history_;
  std::atomic<bool> early_arrivals_{false};  // a hint: another rank spoke of an operation that was not posted here yet
  std::atomic<bool> broken_{false};          // release after status_ is set
};

}  // namespace sluice::detail
