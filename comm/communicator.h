// The public face: communicators, their collectives, and Work.
//
//   Counts   in elements. Buffers may have any byte alignment and need not be windows.
//   In place where NCCL allows it: all_reduce, broadcast, reduce: in == out. all_gather, gather at the root: in == out +
//            rank * count. reduce_scatter, scatter at the root: out == in + rank * count. all_to_all: in == out.
//            Any other overlap is refused (invalid_argument).
//   Lifetime buffers of a posted operation are borrowed until its Work is done. A Communicator outlives its Works.
//   Threads  any thread may post on different communicators; one communicator is used by one thread at a time.
//   Order    operations of one communicator complete in the order posted, those of each lane that calls name (CallOptions::lane) by
//            themselves. send/recv: in order per pair and direction.
//   Errors   a call that can't be right gives a Work that is done with invalid_argument or unsupported, and leaves the
//            communicator as it was (the other ranks will report the mismatch). Any other error (mismatch, peer_lost, timeout,
//            aborted) breaks the communicator: every later call returns it, until abort() or shrink().
//   Fork     not supported after a Runtime exists (diagnosed). Signals are left alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/result.h"
#include "base/types.h"
#include "comm/lanes/lane.h"
#include "comm/schedule/schedule.h"

namespace sluice {

namespace detail {
class CommunicatorState;
class Operation;
class RuntimeState;
}  // namespace detail

// What a call may say beyond its buffers. Empty fields: the communicator's or the configuration's value.
struct CallOptions {
  std::optional<Order> order;
  std::optional<Nanoseconds> deadline;  // no progress for so long: timeout
  std::string algorithm;                // forces one by name: unsupported if it can't
  // Runs the call there, beside the communicator's own operations and in an order of its own; on every rank, as all ranks call it. Lanes
  // of one name, priority and weight are one, with the bounds of the first such call, which takes memory as a communicator does.
  std::optional<Lane> lane{};
};

// A posted operation. Moved, not copied. Destroying an unfinished Work waits for nothing and cancels nothing: the buffers
// stay borrowed until the communicator is closed or aborted.
class [[nodiscard]] Work {
 public:
  Work();
  explicit Work(Status done);                   // already finished
  explicit Work(detail::Operation* operation);  // takes over one reference
  Work(Work&& other) noexcept;
  Work& operator=(Work&& other) noexcept;
  ~Work();

  // Drives progress on this thread until done. Returns the operation's status.
  Status wait();
  // Drives progress once. True when done: then wait() returns at once.
  bool test();

 private:
  detail::Operation* operation_ = nullptr;
  Status done_;
};

// Works that must progress together are simply posted one after another and then waited for: posting never blocks. This
// collects them; wait() returns the first error, after all are done.
class Group {
 public:
  void add(Work work) { works_.push_back(std::move(work)); }
  Status wait();

 private:
  std::vector<Work> works_;
};

struct InOut {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;  // see each call
  DataType type = DataType::float32;
};

// One block per rank, at offsets in elements. Sizes: ranks of the communicator.
struct Blocks {
  std::span<const std::size_t> counts;
  std::span<const std::size_t> offsets;  // empty: one after another
};

// Memory that peers on this host read in place. Freed with the handle; outlives the operations that use it.
class WindowBuffer {
 public:
  WindowBuffer() = default;
  WindowBuffer(std::shared_ptr<detail::RuntimeState> runtime, void* data, std::size_t bytes, bool shared);
  WindowBuffer(WindowBuffer&& other) noexcept;
  WindowBuffer& operator=(WindowBuffer&& other) noexcept;
  ~WindowBuffer();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  bool shared() const { return shared_; }  // false: plain memory, no transport of this runtime has windows

 private:
  std::shared_ptr<detail::RuntimeState> runtime_;  // shared: the arena must outlive every buffer in it
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool shared_ = false;
};

struct SplitOptions {
  Lane lane;
  std::string name;  // for messages; default: parent's name and color
  std::optional<Nanoseconds> deadline;
};

inline constexpr int kNoColor = -1;  // this rank is in no group of the split

// What happened on a lane since the runtime began, as seen by this rank.
struct LaneCounters {
  std::string lane;
  Priority priority = Priority::normal;
  std::uint64_t operations = 0;
  std::uint64_t bytes_sent = 0;
  double seconds_busy = 0;  // from post to completion, of operations not overlapped by others of the lane
  double seconds_blocked =
      0;  // of these, nothing could move here: for peers or the network. Waits below about 1 us are not counted
  std::uint64_t queued = 0;  // operations that did not begin when they were posted, for others were under way
  double queued_p50 = 0;     // seconds from post to beginning, of these; to the next power of two
  double queued_p99 = 0;
};

class Communicator {
 public:
  Communicator();  // empty: only assignment and valid()
  explicit Communicator(std::shared_ptr<detail::CommunicatorState> state);
  bool valid() const { return state_ != nullptr; }

  Rank rank() const;
  int ranks() const;
  Rank world_rank(Rank rank) const;
  const std::string& name() const;
  const Lane& lane() const;

  // count: elements of the whole message; out gets as many.
  Work all_reduce(InOut buffers, Reduction reduction, const CallOptions& options = {});
  // count: elements per rank; `in` holds ranks * count, `out` gets the sum of block rank().
  Work reduce_scatter(InOut buffers, Reduction reduction, const CallOptions& options = {});
  // count: elements per rank; `out` gets ranks * count.
  Work all_gather(InOut buffers, const CallOptions& options = {});
  Work broadcast(InOut buffers, Rank root, const CallOptions& options = {});                    // in: root only
  Work reduce(InOut buffers, Reduction reduction, Rank root, const CallOptions& options = {});  // out: root only
  Work gather(InOut buffers, Rank root, const CallOptions& options = {});                       // count per rank
  Work scatter(InOut buffers, Rank root, const CallOptions& options = {});                      // count per rank
  // count: elements per pair; `in` and `out` hold ranks * count.
  Work all_to_all(InOut buffers, const CallOptions& options = {});

  // The v-forms. Every rank gives the same `blocks` to all_gather_v and reduce_scatter_v; InOut::count is not used. The root's
  // blocks count in gather_v and scatter_v, where every rank gives its own count in InOut::count. all_to_all_v:
  // counts are checked pairwise; a pair that disagrees is an error (mismatch) at both.
  Work all_gather_v(InOut buffers, Blocks blocks, const CallOptions& options = {});
  Work reduce_scatter_v(InOut buffers, Blocks blocks, Reduction reduction, const CallOptions& options = {});
  Work gather_v(InOut buffers, Blocks blocks, Rank root, const CallOptions& options = {});
  Work scatter_v(InOut buffers, Blocks blocks, Rank root, const CallOptions& options = {});
  Work all_to_all_v(InOut buffers, Blocks send, Blocks receive, const CallOptions& options = {});

  // Matched in order per pair and direction. Count and type are checked: both ends get the mismatch. To oneself is allowed.
  Work send(const void* data, std::size_t count, DataType type, Rank to, const CallOptions& options = {});
  Work receive(void* data, std::size_t count, DataType type, Rank from, const CallOptions& options = {});

  Work barrier(const CallOptions& options = {});

  // Collective. Ranks with one color form a communicator, ordered by key, then by rank here. kNoColor: an
  // empty Communicator. Colors are >= 0. Lanes of one color must agree (mismatch).
  Result<Communicator> split(int color, int key, const SplitOptions& options = {});
  // Collective among the ranks that are left after a loss: a new communicator without the lost ones, ordered as here.
  // Ranks that are not known to be lost and do not call it within the deadline are a timeout.
  Result<Communicator> shrink(const SplitOptions& options = {});
  // Ends every operation here and at the other ranks with `aborted`. Local and immediate; safe while another thread waits.
  void abort(const std::string& why);
  // Collective: waits until all ranks are here and this rank's operations are done; after it the peers may leave. Destroying
  // without it is fine after an error, and otherwise tells the peers that this rank left.
  Status close();

  // ok, or the error that broke the communicator.
  Status status() const;

  Result<WindowBuffer> allocate(std::size_t bytes);

  detail::CommunicatorState* state() const { return state_.get(); }

 private:
  std::shared_ptr<detail::CommunicatorState> state_;
};

struct RuntimeOptions {
  Config config;
  Nanoseconds join_deadline = std::chrono::seconds(60);
};

// A rank's share of the process: engine, arena, links, control plane. Threads as ranks: one Runtime each.
class Runtime {
 public:
  // From torchrun's, MPI's or Slurm's variables, `sluice run`, a rendezvous file, or, with none of these, alone.
  static Result<std::unique_ptr<Runtime>> from_environment();
  // The same for a description that the caller made or changed, as programs do that run several ranks per launched process.
  static Result<std::unique_ptr<Runtime>> from_launch(const LaunchEnvironment& launch, const RuntimeOptions& options);
  // Rank `rank` of `ranks`, which all know `unique_id` (make_unique_id, 128 bytes, distributed by the caller).
  static Result<std::unique_ptr<Runtime>> join(std::span<const std::byte, 128> unique_id, Rank rank, int ranks,
                                               const RuntimeOptions& options);
  static Result<std::unique_ptr<Runtime>> alone(const RuntimeOptions& options);
  // All ranks in this thread, over the loop transport: seeded delays, virtual time. Waiting on any Work drives all of them.
  static Result<std::vector<std::unique_ptr<Runtime>>> loop(int ranks, std::uint64_t seed,
                                                            const RuntimeOptions& options);

  ~Runtime();
  Communicator world();  // the same at every call; lives as long as this Runtime
  std::vector<LaneCounters> lane_counters() const;
  // The same in Prometheus' text form (exposition format 0.0.4).
  std::string lane_metrics() const;
  // The flight recorder, as FOLDER/JOB/rank-N.json for `sluice trace`. Returns the name. Any thread. Errors: system, refused.
  Result<std::string> write_trace(const std::string& folder, const std::string& why);
  const Config& config() const;

  explicit Runtime(std::shared_ptr<detail::RuntimeState> state);
  const std::shared_ptr<detail::RuntimeState>& state() const { return state_; }

 private:
  std::shared_ptr<detail::RuntimeState> state_;  // shared: communicators, buffers and Works may outlive the handle
  Communicator world_;
};

}  // namespace sluice
