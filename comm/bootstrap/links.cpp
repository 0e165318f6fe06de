#include "comm/bootstrap/links.h"

#include <algorithm>

#include "base/assert.h"
#include "comm/bootstrap/peer_info.h"

namespace sluice {
namespace {

constexpr Nanoseconds kPauseMin = std::chrono::milliseconds(5);
constexpr Nanoseconds kPauseMax = std::chrono::milliseconds(500);

Purpose purpose_of(LinkClass link) {
  SLUICE_ASSERT(link == LinkClass::shared_memory || link == LinkClass::tcp,
                "streams are for shared_memory and tcp links");
  return link == LinkClass::tcp ? Purpose::link_tcp : Purpose::link_shared_memory;
}

}  // namespace

Links::Links(EventLoop& loop, Channels& channels, Rank self, Nanoseconds deadline)
    : loop_(loop), channels_(channels), self_(self), deadline_(deadline) {
  channels_.own(Purpose::link_shared_memory, this);
  channels_.own(Purpose::link_tcp, this);
}

void Links::want(LinkId id, LinkClass link_class) {
  if (stopped_) return;
  const Rank peer = id.peer;
  const Key key{purpose_of(link_class), id};
  Link& link = links_[key];
  if (link.wanted || link.delivered) return;
  link.wanted = true;
  link.give_up = loop_.now() + deadline_;
  if (const auto why = gone_.find(peer); why != gone_.end()) return give_up(key, why->second);
  const bool known = peer >= 0 && static_cast<std::size_t>(peer) < peers_->size() && peer != self_;
  if (!known)
    return give_up(key, {Code::invalid_argument,
                         "rank " + std::to_string(peer) + " can't be linked to by rank " + std::to_string(self_)});
  const auto& peers = *peers_;
  if (link_class == LinkClass::shared_memory &&
      peers[static_cast<std::size_t>(peer)].host_id != peers[static_cast<std::size_t>(self_)].host_id)
    return give_up(key,
                   {Code::unsupported, "rank " + std::to_string(peer) + " is on another host (" +
                                           peers[static_cast<std::size_t>(peer)].host_name + "): no shared memory"});
  if (link.early) return hand_over(key, std::move(link.early));
  if (self_ < peer) return dial(key);
  link.timer = loop_.after(deadline_, [this, key] {
    const std::string rank = "rank " + std::to_string(key.second.peer);
    give_up(key, {Code::timeout,
                  rank + " did not open the other end of a link to rank " + std::to_string(self_) + " in time"});
  });
}

void Links::dial(const Key& key) {
  Link& link = links_[key];
  const PeerInfo& peer = (*peers_)[static_cast<std::size_t>(key.second.peer)];
  const Endpoint to =
      key.first == Purpose::link_tcp ? Endpoint{"", peer.address, peer.port} : Endpoint{peer.unix_name, 0, 0};
  link.dialing = &channels_.dial(to, key.first, key.second, link.give_up - loop_.now());
}

void Links::deliver_to(LinkClass link_class, Transport* to) {
  const Purpose purpose = purpose_of(link_class);
  transport(purpose) = to;
  if (to == nullptr) return;
  for (auto& [key, link] : links_)
    if (key.first == purpose && link.early) hand_over(key, std::move(link.early));
}

void Links::gone(Rank peer, bool lost, const Status& why) {
  gone_.insert_or_assign(peer, why);
  for (auto& [key, link] : links_)
    if (key.second.peer == peer && link.wanted && !link.delivered) give_up(key, why);
  if (!lost) return;  // what a peer that left has sent is still to be read
  for (Transport* const one : transports_)
    if (one != nullptr) one->fail_peer(peer, why);
}

void Links::stop() {
  stopped_ = true;
  for (auto& [key, link] : links_) {
    if (link.dialing != nullptr) channels_.close(*std::exchange(link.dialing, nullptr));
    loop_.cancel(link.timer);
  }
  transports_ = {};
}

void Links::opened(Channel& channel) {
  const Key key{channel.purpose, {channel.peer, channel.lane}};
  const bool expected = channel.dialed ? links_[key].dialing == &channel : channel.peer < self_;
  if (stopped_ || !expected || links_[key].delivered) return channels_.close(channel);
  links_[key].dialing = nullptr;
  hand_over(key, channels_.take(channel));
}

void Links::hand_over(const Key& key, UniqueFd stream) {
  Link& link = links_[key];
  Transport* to = transport(key.first);
  if (to == nullptr) {
    link.early = std::move(stream);
    return;
  }
  loop_.cancel(link.timer);
  link.delivered = true;
  to->adopt(key.second, std::move(stream));
}

Status Links::frame(Channel&, FrameType, std::span<const std::byte>) {
  return {Code::refused, "a link carries no messages of the control plane"};
}

void Links::closed(Channel& channel, const Status& why) {
  const Key key{channel.purpose, {channel.peer, channel.lane}};
  const auto found = links_.find(key);
  if (found == links_.end() || found->second.dialing != &channel) return;
  Link& link = found->second;
  link.dialing = nullptr;
  if (loop_.now() >= link.give_up)
    return give_up(key, {Code::timeout, "rank " + std::to_string(key.second.peer) + " at " + channel.with +
                                            " did not take a link from rank " + std::to_string(self_) +
                                            " in time: " + why.text()});
  link.pause = std::clamp<Nanoseconds>(link.pause * 2, kPauseMin, kPauseMax);
  link.timer = loop_.after(link.pause, [this, key] { dial(key); });
}

void Links::give_up(const Key& key, const Status& why) {
  Link& link = links_[key];
  if (link.dialing != nullptr) channels_.close(*std::exchange(link.dialing, nullptr));
  loop_.cancel(link.timer);
  link.early.reset();
  link.delivered = true;  // with a failure: never tried again
  if (Transport* to = transport(key.first); to != nullptr) to->fail_link(key.second, why);
}

}  // namespace sluice
