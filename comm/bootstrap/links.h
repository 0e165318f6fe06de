// Streams for transports: dialed when asked for, accepted when a peer dials, handed over once both sides have proved
// themselves.
//
//   Who dials  the lower rank. The higher one waits: both ends of a flow open their half, so both ask.
//   Early      a stream whose transport is not known yet is kept until it is.
//   Failing    a peer that is lost or left, that can't be reached by this class of link, or that doesn't answer within the link
//              deadline, is reported to Transport::fail_peer. Anything else is tried again: a stopped peer is waited for.
//   Threads    the loop's.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "comm/bootstrap/channels.h"
#include "transport/transport.h"

namespace sluice {

class Links final : public ChannelOwner {
 public:
  Links(EventLoop& loop, Channels& channels, Rank self, Nanoseconds deadline);

  // The job has started; borrowed for good.
  void start(const std::vector<PeerInfo>& peers) { peers_ = &peers; }
  void want(LinkId id, LinkClass link);
  void deliver_to(LinkClass link, Transport* transport);
  // The peer is lost or has left.
  void gone(Rank peer, bool lost, const Status& why);
  void stop();

  void opened(Channel& channel) override;
  Status frame(Channel& channel, FrameType type, std::span<const std::byte> body) override;
  void closed(Channel& channel, const Status& why) override;

 private:
  using Key = std::pair<Purpose, LinkId>;
  struct Link {
    bool wanted = false;
    bool delivered = false;
    Channel* dialing = nullptr;
    UniqueFd early;          // proved, for a transport that is not known yet
    Nanoseconds give_up{0};  // absolute
    Nanoseconds pause{0};
    std::uint64_t timer = 0;
  };

  void dial(const Key& key);
  void hand_over(const Key& key, UniqueFd stream);
  void give_up(const Key& key, const Status& why);
  Transport*& transport(Purpose purpose) { return transports_[purpose == Purpose::link_tcp ? 1 : 0]; }

  EventLoop& loop_;
  Channels& channels_;
  Rank self_;
  Nanoseconds deadline_;
  const std::vector<PeerInfo>* peers_ = nullptr;
  std::array<Transport*, 2> transports_{};
  std::map<Key, Link> links_;
  std::map<Rank, Status> gone_;
  bool stopped_ = false;
};

}  // namespace sluice
