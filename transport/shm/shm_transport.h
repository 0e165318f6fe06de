// The shared-memory transport: ranks of one host, processes or threads, read each other's slots and windows in place.
//
//   Memory   one sparse arena per rank (arena.h), passed over the authenticated Unix stream as a descriptor: nothing of
//            it is in a file system, so a small /dev/shm does not matter. A flow's ring lies in its sender's arena.
//   Cost     a message is written once and read in place; progress() of a rank that has nothing to do is two loads, and
//            one epoll_wait in kPollEvery calls, which notices peers that are gone.
//   Closing  a ring's memory is used again only when both ends closed its communicator, and never when the link is
//            lost: the receiver may write its released count until then.
//   Trust    peers proved the secret, but every number they say (places, shapes, sizes, offsets) is checked before use.
//   Limits   Linux 5.x (memfd, SCM_RIGHTS); ranks must share a kernel.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "transport/extent_allocator.h"
#include "transport/peer_table.h"
#include "transport/poller.h"
#include "transport/shm/arena.h"
#include "transport/shm/record_stream.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace sluice {

class ShmTransport final : public Transport {
 public:
  // Of world rank `rank` of `ranks`. `dialer` is borrowed; Setting::arena_bytes is read during the call. Errors:
  // out_of_resource, system.
  static Result<std::unique_ptr<ShmTransport>> make(Rank rank, int ranks, const Config& config, Dialer& dialer);
  ~ShmTransport() override;

  LinkClass link_class() const override { return LinkClass::shared_memory; }
  Capabilities capabilities(Rank peer) const override;
  Result<OutFlow*> open_out(Rank peer, FlowId flow, RingShape shape) override;
  Result<InFlow*> open_in(Rank peer, FlowId flow, RingShape shape) override;
  void use_lane(std::uint64_t, const LaneRules&) override {}  // progress() moves nothing of a flow
  void show_urgency(const ShownUrgency& shown) override;
  UrgencyElsewhere urgency_elsewhere() const override;
  void close_flows(std::uint64_t communicator) override;
  std::size_t progress() override;
  void prepare_wait() override { sleeper_.prepare(); }
  void cancel_wait() override;
  void wait(Nanoseconds at_most) override;
  void wake() override { sleeper_.wake(); }
  Nanoseconds patience() const override;
  int wait_fd() const override { return poller_.fd(); }
  Status peer_status(Rank peer) const override { return peers_.status(peer); }
  void fail_peer(Rank peer, Status why) override;
  void adopt(LinkId id, UniqueFd stream) override;
  void* allocate_window(std::size_t bytes) override;
  void free_window(void* memory) override;

  std::size_t arena_bytes() const { return arena_->bytes(); }
  std::size_t free_bytes() const { return space_.free_bytes(); }

 private:
  struct Link;
  struct Out;
  struct In;

  ShmTransport(Rank rank, int ranks, Dialer& dialer, Poller poller, std::shared_ptr<Arena> arena);

  void close_flows_of(Link& link, std::uint64_t communicator);
  Status check_open(Rank peer, FlowId flow, RingShape shape) const;
  Link& link_to(Rank peer);
  Result<std::size_t> allocate_ring(RingShape shape);
  void announce(Link& link, FlowId flow, const Out& out);
  void bind_in(Link& link, In& in, std::uint64_t offset);

  std::size_t take_inbox();
  void start(Link& link, UniqueFd stream);
  std::size_t poll_links();
  std::size_t read_records(Link& link);
  Status take_record(Link& link, const Record& record);
  Status take_greeting(Link& link, const Record& greeting);
  Status take_announcement(Link& link, const Record& record);
  void take_close(Link& link, std::uint64_t communicator);
  void send(Link& link);
  void lose(Link& link, const Status& why);

  Rank rank_;
  Dialer& dialer_;
  PeerTable peers_;
  LinkInbox inbox_;
  Poller poller_;
  std::shared_ptr<Arena> arena_;  // shared with peers in this process
  ExtentAllocator space_;
  std::vector<std::unique_ptr<Link>> links_;  // by peer; nullptr: none yet. The one to itself has no stream
  std::vector<const Link*> neighbours_;       // of them, those whose arenas we joined
  std::set<std::uint64_t> closed_;            // communicators, never opened again
  std::uint32_t attention_seen_ = 0;
  std::uint32_t calls_ = 0;
  std::size_t streams_ = 0;  // open ones
  std::size_t unsent_ = 0;   // links with records that their socket did not take
  bool poll_next_ = false;
  Sleeper sleeper_;
};

}  // namespace sluice
