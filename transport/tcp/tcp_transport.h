// The TCP transport: ranks of different hosts (or of one, where they share no memory).
//
//   Links    one connection per peer and lane, for all its flows in both directions (frame.h).
//   Credits  the receiver's `open` grants a flow's slots, its `credit` frames return them: nothing is sent that the
//            receiver has no slot for, so every payload is read straight into its slot, and an enemy can make us hold
//            nothing. Counts are returned at half a ring, with data that goes the same way, or when there is nothing
//            else to do.
//   Lanes    numbered by priority. The most urgent link is served first; a less urgent one to the same peer sends what its lanes are
//            guaranteed while the network does not take what the first has, or another rank of the host begins with something more
//            urgent (claim_network). Lanes of one link share by weight. What the kernel holds is not reordered, so it is kept short
//            where lanes compete (set_bounds).
//   Cost     one sendmsg for up to 64 messages, one readv for a large one or many small ones; progress() with nothing
//            to do is one epoll_wait, or none while no link exists.
//   Trust    peers proved the secret; a frame that breaks the protocol closes its link with a logged reason (refused)
//            and disturbs nobody else.
//   Limits   rings of all flows together within Setting::arena_bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "base/config.h"
#include "transport/peer_table.h"
#include "transport/poller.h"
#include "transport/sleeper.h"
#include "transport/tcp/tcp_link.h"
#include "transport/transport.h"

namespace sluice {

class TcpTransport final : public Transport {
 public:
  // Of world rank `rank` of `ranks`. `dialer` is borrowed; `config` is read during the call. Errors: system.
  static Result<std::unique_ptr<TcpTransport>> make(Rank rank, int ranks, const Config& config, Dialer& dialer);

  LinkClass link_class() const override { return LinkClass::tcp; }
  Capabilities capabilities(Rank peer) const override;
  Result<OutFlow*> open_out(Rank peer, FlowId flow, RingShape shape) override;
  Result<InFlow*> open_in(Rank peer, FlowId flow, RingShape shape) override;
  void use_lane(std::uint64_t communicator, const LaneRules& rules) override;
  void claim_network(const NetworkClaim& claim) override;
  bool unsent() const override;
  void close_flows(std::uint64_t communicator) override;
  std::size_t progress() override;
  void prepare_wait() override { sleeper_.prepare(); }
  void cancel_wait() override { sleeper_.cancel(); }
  void wait(Nanoseconds at_most) override;
  void wake() override { sleeper_.wake(); }
  Nanoseconds patience() const override;
  int wait_fd() const override { return poller_.fd(); }
  Status peer_status(Rank peer) const override { return peers_.status(peer); }
  void fail_peer(Rank peer, Status why) override;
  void fail_link(LinkId id, Status why) override;
  void adopt(LinkId id, UniqueFd stream) override;
  void* allocate_window(std::size_t) override { return nullptr; }
  void free_window(void*) override {}

 private:
  TcpTransport(Rank rank, int ranks, const Config& config, Dialer& dialer, Poller poller);

  Status check_open(Rank peer, const FlowId& flow, RingShape shape) const;
  TcpLane& lane_of(std::uint64_t communicator);
  bool must_wait(const TcpLink& link);
  bool lanes_compete() const;
  std::optional<std::uint8_t> wanted_elsewhere(Nanoseconds now) const;
  void let_go();
  void set_bounds(Nanoseconds now);
  TcpLink& link_to(LinkId id);
  TcpLink& link_for(LinkId id);  // without asking the Dialer
  std::size_t take_inbox();
  void start(TcpLink& link, UniqueFd stream);
  std::size_t take_events(std::span<const epoll_event> events);
  std::size_t send_all(bool all_credits);
  std::size_t moved_or_lost(TcpLink& link, const Result<std::size_t>& moved);
  void close_all(Rank peer);
  void lose(TcpLink& link, const Status& why);
  static std::size_t index_of(LinkId id) { return static_cast<std::size_t>(id.peer) * kLanes + id.lane; }

  Rank rank_;
  Dialer& dialer_;
  PeerTable peers_;
  LinkInbox inbox_;
  Poller poller_;
  Doorbell door_{};
  Sleeper sleeper_;
  std::set<std::uint64_t> closed_;               // communicators, never opened again
  std::vector<std::unique_ptr<TcpLink>> links_;  // by index_of; nullptr: none yet. Those to itself have no stream
  std::vector<TcpLink*> live_;                   // those with a stream, the most urgent lane first
  std::map<std::uint32_t, std::unique_ptr<TcpLane>> lanes_;  // by number
  std::map<std::uint64_t, TcpLane*> lane_of_;                // by communicator
  std::size_t budget_;                                       // bytes of rings that may still be made
  Nanoseconds delay_;                                        // Setting::lane_delay
  Nanoseconds bounds_set_{0};
  bool bounded_ = false;          // some link is, or was
  std::uint8_t in_use_ = kLanes;  // the most urgent lane that sent lately
  bool holding_ = false;          // a link waits for a more urgent one
  NetworkClaim claim_;            // of other ranks of this host, now
  bool ever_claimed_ = false;
  std::array<Nanoseconds, kLanes> claimed_at_{};  // each lane last
  std::uint32_t idle_calls_ = 0;
};

}  // namespace sluice
