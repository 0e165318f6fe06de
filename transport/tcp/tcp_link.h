// One link of the TCP transport: the connection to a peer for one lane, and all flows of that lane with it.
//
//   Errors   a Status from start(), receive(), send() or open_*() with code peer_lost or refused ends the link: the
//            caller close()s it and tells its peer table. Rings stay while flows use them.
//   Threads  one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/lane_rules.h"
#include "transport/ring_memory.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/send_batch.h"
#include "transport/transport.h"

namespace sluice {

// A lane of a transport, which its flows on all links share.
struct TcpLane {
  explicit TcpLane(const LaneRules& its_rules) : rules(its_rules), floor(its_rules.min_rate, kFloorBurst) {}
  static constexpr std::uint64_t kFloorBurst = 1 << 17;
  LaneRules rules;
  TokenBucket floor;
};

// How a link may send now.
struct TcpTurn {
  bool all_credits = false;          // also counts that could wait
  bool held = false;                 // more urgent messages wait for the network: only what lanes are guaranteed
  std::optional<Nanoseconds> now{};  // where lanes compete
};

// What a link knows of its transport.
struct TcpEnds {
  Rank self = 0;
  LinkId link;  // to itself: flows without a connection
  int ranks = 0;
};

class TcpLink {
 public:
  // `closed`: communicators that were closed here; borrowed.
  TcpLink(TcpEnds ends, const std::set<std::uint64_t>& closed) : ends_(ends), closed_(closed) {}

  LinkId id() const { return ends_.link; }
  Rank peer() const { return ends_.link.peer; }
  bool asked = false;  // the Dialer was, or the peer's asked for us

  // `shape` passed check_shape. `budget`: bytes of rings that may still be made. `lane` is borrowed. Errors: invalid_argument (open
  // with another shape), out_of_resource, refused (the peer opened it with another shape).
  Result<OutFlow*> open_out(const FlowId& flow, RingShape shape, TcpLane& lane, std::size_t& budget);
  Result<InFlow*> open_in(const FlowId& flow, RingShape shape, std::size_t& budget);
  void close_flows(std::uint64_t communicator, std::size_t& budget);

  void start(UniqueFd stream);
  void close();
  int fd() const { return stream_.get(); }
  bool live() const { return static_cast<bool>(stream_); }

  // What the poller told, once for each change (edge triggered).
  void take_event(std::uint32_t events);
  bool readable() const { return readable_; }
  // Reads what is there, within a budget. Returns how much moved. Errors: peer_lost, refused.
  Result<std::size_t> receive();
  // Sends what the socket takes. Errors: peer_lost, refused (what we committed).
  Result<std::size_t> send(const TcpTurn& turn);
  // The network does not take what it was given: the socket is full, or holds much that was not acknowledged.
  bool backlog();
  bool has_something_to_send() const { return !batch_.empty() || anything_to_send(); }
  std::size_t lanes() const { return lanes_.size(); }
  bool bounded() const { return bound_ != 0; }
  // When it last took messages over to send.
  Nanoseconds last_sent() const { return last_sent_; }
  // Keeps what is in the kernel to what the link carries in `delay`, or to what its lanes say. From time to time. Returns the bound if it
  // is a new one, else 0.
  std::size_t bound(Nanoseconds delay, Nanoseconds now);
  void unbound();

 private:
  struct Out {
    FlowId id;
    OutFlow flow;
    RingMemory ring;
    bool peer_open = false;
    std::uint64_t sent = 0;
    bool sendable() const { return peer_open && sent < flow.committed(); }
  };
  struct In {
    FlowId id;
    InFlow flow;
    RingMemory ring;  // to itself a rank uses the sender's
    std::uint64_t received = 0;
    std::uint64_t told = 0;  // released count that the sender was told
  };

  bool to_self() const { return ends_.self == peer(); }
  // The flows of one lane: they take turns.
  struct Lane {
    TcpLane* of = nullptr;
    LaneShare share;
    bool idle = true;  // had nothing to send when it was last looked at
    std::vector<Out*> outs;
    std::size_t turn = 0;
    bool sendable() const;
    Out* next();  // whose turn it is; only if sendable()
  };
  Error other_shape(const FlowId& flow, RingShape theirs, RingShape ours) const;

  Result<std::size_t> take_frames();
  Status take_header();
  Status take_open(const Frame& frame);
  Status take_message(const Frame& frame);
  Status take_credit(const Frame& frame);

  Result<std::size_t> fill_batch(const TcpTurn& turn);
  std::size_t add_credits(bool all);
  bool anything_to_send() const;
  bool is_owed(Nanoseconds now) const;
  void look(Nanoseconds now);
  std::size_t guaranteed() const;
  Lane* next_lane(const TcpTurn& turn);
  Result<std::size_t> add_messages(const TcpTurn& turn);
  Status add_message(Out& out);

  TcpEnds ends_;
  const std::set<std::uint64_t>& closed_;
  UniqueFd stream_;
  bool greeted_ = false;
  bool readable_ = false;  // there may be more to read
  bool writable_ = false;
  bool ended_ = false;  // the poller told of the end: read up to it
  FrameDecoder decoder_;
  In* receiving_ = nullptr;  // whose slot the payload under way fills; nullptr: it is thrown away
  SendBatch batch_;
  std::vector<Frame> control_;  // greeting and opens to be sent
  std::map<FlowId, std::unique_ptr<Out>> out_;
  std::map<FlowId, std::unique_ptr<In>> in_;
  std::vector<std::unique_ptr<Lane>> lanes_;  // with all of out_
  std::uint64_t served_ = 0;                  // how much the lane had moved that was served last
  Nanoseconds last_sent_{0};                  // where lanes compete
  double rate_ = 0;                           // bytes per second that it was seen to carry
  Nanoseconds looked_{0};                     // when that was looked at last
  std::uint64_t acknowledged_ = 0;            // bytes, then
  Nanoseconds round_trip_{0};                 // the least, then
  Nanoseconds now_round_trip_{0};             // with the queues on the way, then
  std::size_t bound_ = 0;                     // bytes in the kernel; 0: the kernel's choice
  bool queued_ = false;                       // something was sent since the kernel was seen to hold little
  bool has_message_ = false;                  // the batch: not only opens and credits, which never wait
  bool granted_ = false;                      // its messages were owed to their lanes when they were taken
  std::vector<In*> ins_;                      // all of in_, to be looked through at every send()
  std::map<FlowId, RingShape> early_opens_;   // of flows that we have not opened yet
};

}  // namespace sluice
