// The contract of every way that bytes go from rank to rank. Ranks here are world ranks: one transport
// object serves one rank, for all its communicators.
//
//   Flows    a flow is one-directional, ordered, and named by (communicator, lane, channel, sender,
//            receiver). Opening is local and never blocks; what is committed before the peer opened its
//            half waits. Both halves must give the same shape.
//   Links    made lazily: the first open towards a peer asks the Dialer for an authenticated stream,
//            which arrives later through adopt().
//   Threads  everything except adopt(), wake() and peer_status() runs under the rank's owner token.
//   Errors   a broken peer is reported by peer_status() and never stops the flows of others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "base/unique_fd.h"
#include "transport/lane_rules.h"
#include "transport/slot_ring.h"
#include "transport/urgency.h"

namespace sluice {

// Names a flow between two given ranks in one direction. `lane`: smaller is more urgent, which is the order
// in which a transport serves its flows.
struct FlowId {
  std::uint64_t communicator = 0;
  std::uint8_t lane = 0;
  std::uint8_t channel = 0;  // kPointToPointChannel: send/recv
  auto operator<=>(const FlowId&) const = default;
};
inline constexpr std::uint8_t kPointToPointChannel = 255;
std::string describe(const FlowId& flow);  // "communicator 7 lane 1 channel 0"
std::string describe(RingShape shape);     // "8 slots of 65536 bytes"

enum class LinkClass : std::uint8_t { self, loop, shared_memory, tcp };
std::string_view name(LinkClass link);

struct Capabilities {
  LinkClass link = LinkClass::loop;
  bool windows = false;         // a peer reads our arena at an address
  double latency_seconds = 0;   // of one small message, as the tuner's first guess
  double bytes_per_second = 0;  // of one flow
  std::size_t slot_bytes_max = 0;
};

// A link to a peer. What crosses a network has one for each lane in use, so that lanes don't queue behind each other.
struct LinkId {
  Rank peer = 0;
  std::uint8_t lane = 0;  // below kLanes; 0 where a transport has one link per peer
  auto operator<=>(const LinkId&) const = default;
};

// Asks for streams to peers. Implemented by the bootstrap; called under the owner token, never blocks.
class Dialer {
 public:
  virtual ~Dialer() = default;
  // An authenticated, connected stream for this link is wanted. It is delivered to
  // Transport::adopt on both sides, or the peer's failure is reported to Transport::fail_peer. Asking twice is
  // harmless, and one stream serves both directions: when both sides ask at once, the Dialer makes one and both adopt
  // that one. A transport refuses a second.
  virtual void want_link(LinkId id, LinkClass link) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  virtual LinkClass link_class() const = 0;
  virtual Capabilities capabilities(Rank peer) const = 0;

  // Borrowed until close_flows of its communicator. Opening the same flow again gives the same object.
  // Errors: invalid_argument (shape), out_of_resource (arena), peer_lost.
  virtual Result<OutFlow*> open_out(Rank peer, FlowId flow, RingShape shape) = 0;
  virtual Result<InFlow*> open_in(Rank peer, FlowId flow, RingShape shape) = 0;
  // By what rules a communicator's flows are served; before the first is opened.
  virtual void use_lane(std::uint64_t communicator, const LaneRules& rules) = 0;
  // Ranks of one host that have a link with each other show each other how urgent their operations are.
  virtual void show_urgency(const ShownUrgency&) {}
  virtual UrgencyElsewhere urgency_elsewhere() const { return {}; }
  // What other ranks of this host want of the network, until told otherwise.
  virtual void claim_network(const NetworkClaim&) {}
  // Something waits to be sent, now or when others let it: progress() is needed though no operation is under way.
  virtual bool unsent() const { return false; }
  // Forgets all flows of a communicator; messages not yet released are dropped, late ones too. The number must not be
  // used again on this transport: opening a flow of a closed communicator is an error (invalid_argument).
  virtual void close_flows(std::uint64_t communicator) = 0;

  // Moves what can be moved without blocking, most urgent lane first. Returns how many slots, credits or
  // links moved: 0 means there was nothing to do.
  virtual std::size_t progress() = 0;

  // How long a wait may last at most, for something that only time brings.
  virtual Nanoseconds patience() const { return std::chrono::hours(1); }

  // Sleeping without missing anything. The waiter does, in this order:
  //   prepare_wait();                        whatever arrives from here on ends the wait that follows
  //   if (progress() > 0 || a flow has what I wait for) cancel_wait();
  //   else wait(at_most);                    sleeps until something may have arrived, wake() was called, or `at_most`
  //   passed
  // wait() may return early, and ends the preparation. Several transports at once: wait_any() instead of wait().
  virtual void prepare_wait() = 0;
  virtual void cancel_wait() = 0;
  virtual void wait(Nanoseconds at_most) = 0;
  virtual void wake() = 0;  // any thread. Sticky: the wait under way, or else the next one, returns at once

  // Readable when a prepared wait would end; -1: this transport can't be waited for together with others.
  virtual int wait_fd() const = 0;

  // ok, or why the link to `peer` is broken (peer_lost, refused). Any thread.
  virtual Status peer_status(Rank peer) const = 0;
  // Told by the control plane: no more traffic with this peer. Any thread.
  virtual void fail_peer(Rank peer, Status why) = 0;
  // The same of one link: what the peer sent on others is still to be read.
  virtual void fail_link(LinkId id, Status why) { fail_peer(id.peer, std::move(why)); }
  // A stream from the Dialer. Any thread; taken up by the next progress().
  virtual void adopt(LinkId id, UniqueFd stream) = 0;

  // Memory that peers on this transport read at an address; 64-byte aligned, zeroed the first time. nullptr: this
  // transport has no windows or its arena is full.
  virtual void* allocate_window(std::size_t bytes) = 0;
  virtual void free_window(void* memory) = 0;
};

// wait() for several transports that are all prepared, and whose progress() then had nothing to do. At most
// kWaitAnyMax. One alone may be of any kind; of several each must have a wait_fd().
void wait_any(std::span<Transport* const> transports, Nanoseconds at_most);
inline constexpr std::size_t kWaitAnyMax = 8;

}  // namespace sluice
