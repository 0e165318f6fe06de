// One link of the TCP transport: the connection to a peer, and all flows with it.
//
//   Errors   a Status from start(), receive(), send() or open_*() with code peer_lost or refused ends the link: the
//            caller close()s it and tells its peer table. Rings stay while flows use them.
//   Threads  one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/ring_memory.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/send_batch.h"
#include "transport/transport.h"

namespace sluice {

// What a link knows of its transport.
struct TcpEnds {
  Rank self = 0;
  Rank peer = 0;  // the same: flows to itself, without a connection
  int ranks = 0;
};

class TcpLink {
 public:
  // `closed`: communicators that were closed here; borrowed.
  TcpLink(TcpEnds ends, const std::set<std::uint64_t>& closed) : ends_(ends), closed_(closed) {}

  Rank peer() const { return ends_.peer; }
  bool asked = false;  // the Dialer was, or the peer's asked for us

  // `shape` passed check_shape. `budget`: bytes of rings that may still be made. Errors: invalid_argument (open with
  // another shape), out_of_resource, refused (the peer opened it with another shape).
  Result<OutFlow*> open_out(const FlowId& flow, RingShape shape, std::size_t& budget);
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
  // Sends what the socket takes. `all_credits`: also counts that could wait. Errors: peer_lost, refused (what we
  // committed).
  Result<std::size_t> send(bool all_credits);

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

  bool to_self() const { return ends_.self == ends_.peer; }
  Error other_shape(const FlowId& flow, RingShape theirs, RingShape ours) const;

  Result<std::size_t> take_frames();
  Status take_header();
  Status take_open(const Frame& frame);
  Status take_message(const Frame& frame);
  Status take_credit(const Frame& frame);

  Result<std::size_t> fill_batch(bool all_credits);
  std::size_t add_credits(bool all);
  Result<std::size_t> add_messages();
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
  std::vector<Out*> out_by_lane_;
  std::vector<In*> ins_;  // all of in_, to be looked through at every send()
  std::size_t turn_ = 0;
  std::map<FlowId, RingShape> early_opens_;  // of flows that we have not opened yet
};

}  // namespace sluice
