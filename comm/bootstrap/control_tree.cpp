// Forming, flooding and leaving; how the tree mends is in control_tree_mending.cpp.
#include "comm/bootstrap/control_tree.h"

#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "comm/bootstrap/peer_info.h"

namespace sluice {
namespace {

SharedBytes shared(Bytes bytes) { return std::make_shared<const Bytes>(std::move(bytes)); }

}  // namespace

ControlTree::ControlTree(EventLoop& loop, Channels& channels, Rank self, int ranks, std::uint64_t host_id, Hooks hooks)
    : loop_(loop),
      channels_(channels),
      self_(self),
      host_id_(host_id),
      shape_(ranks),
      hooks_(std::move(hooks)),
      log_(ranks),
      prober_(loop) {
  channels_.own(Purpose::tree, this);
}

// ---- forming

void ControlTree::connect_to_parent(Rank parent, const PeerInfo& peer) {
  forming_parent_ = peer;
  dialing_ = parent;
  dial_parent();
}

void ControlTree::start(std::vector<PeerInfo> peers) { joined(std::move(peers)); }

void ControlTree::check_ready() {
  if (!peers_.empty() || ready_told_) return;
  for (const Rank child : shape_.children(self_))
    if (!linked(child) || !ready_children_[child]) return;
  const auto parent = shape_.parent(self_);
  if (parent && !linked(*parent)) return;
  ready_told_ = true;
  if (parent) return channels_.send(*links_.at(*parent), encode_bare(FrameType::ready));
  hooks_.subtree_ready();
}

Status ControlTree::take_table(Channel& channel, std::span<const std::byte> body) {
  if (!peers_.empty() || channel.peer != shape_.parent(self_)) return {Code::refused, "a table nobody asked for"};
  SLUICE_TRY_ASSIGN(std::vector<PeerInfo> peers, decode_table(body));
  if (static_cast<int>(peers.size()) != shape_.ranks())
    return {Code::refused,
            "a table of " + std::to_string(peers.size()) + " ranks for a job of " + std::to_string(shape_.ranks())};
  joined(std::move(peers));
  return {};
}

void ControlTree::joined(std::vector<PeerInfo> peers) {
  peers_ = std::move(peers);
  const SharedBytes table = shared(encode_table(peers_));
  for (const Rank child : shape_.children(self_))
    if (linked(child)) channels_.send(*links_.at(child), table);
  if (self_ != 0) hooks_.table_arrived(peers_);
  for (const Flooded& flooded : std::exchange(early_, {})) spread(flooded, nullptr);
  settle();
}

// ---- channels

void ControlTree::opened(Channel& channel) {
  const Rank peer = channel.peer;
  if (!shape_.holds(peer) || peer == self_) return channels_.close(channel);
  if (&channel == dial_) {
    dial_ = nullptr;
    stop_dialing();
  }
  // A second stream of one neighbour replaces the first, which it has given up.
  if (const auto old = links_.find(peer); old != links_.end()) channels_.close(*old->second);
  links_[peer] = &channel;
  ready_children_[peer] = false;
  ready_told_ = ready_told_ && !channel.dialed;
  if (peers_.empty()) return check_ready();
  for (const SharedBytes& frame : log_.frames()) channels_.send(channel, frame);
  settle();
}

Status ControlTree::frame(Channel& channel, FrameType type, std::span<const std::byte> body) {
  switch (type) {
    case FrameType::ready:
      ready_children_[channel.peer] = true;
      // A child that lost its first link while the tree formed asks again.
      if (!peers_.empty()) channels_.send(channel, encode_table(peers_));
      check_ready();
      return {};
    case FrameType::table: return take_table(channel, body);
    case FrameType::notice: return take_notice(channel, body);
    case FrameType::detach:
      links_.erase(channel.peer);
      channels_.close(channel);
      settle();
      return {};
    default: return {Code::refused, "a " + std::string(name(type)) + " message has no place in the tree"};
  }
}

void ControlTree::closed(Channel& channel, const Status& why) {
  if (&channel == dial_) {  // it is still wanted: again, after a pause that grows
    dial_ = nullptr;
    dial_pause_ = std::min<Nanoseconds>(std::max<Nanoseconds>(dial_pause_ * 2, std::chrono::milliseconds(10)),
                                        std::chrono::milliseconds(500));
    dial_timer_ = loop_.after(dial_pause_, [this] { dial_parent(); });
    return;
  }
  const auto found = links_.find(channel.peer);
  if (found == links_.end() || found->second != &channel) return;
  links_.erase(found);
  if (peers_.empty()) {
    ready_told_ = false;
    if (channel.dialed) {
      dialing_ = channel.peer;
      dial_timer_ = loop_.after(std::chrono::milliseconds(100), [this] { dial_parent(); });
    }
    return;
  }
  if (!left_ && shape_.present(channel.peer))
    lost(channel.peer, why.code() == Code::peer_lost ? "its control stream ended without a farewell" : why.text());
  settle();
}

// ---- flooding

void ControlTree::flood(Notice notice) {
  if (left_ || peers_.empty()) return;
  SLUICE_ASSERT(shape_.holds(notice.world_rank), "a notice speaks of a rank of this job");
  SLUICE_ASSERT(notice.kind != NoticeKind::peer_left, "leave() says farewell");
  bound(notice);
  if (notice.kind == NoticeKind::peer_lost && shape_.holds(notice.world_rank) && notice.world_rank != self_ &&
      shape_.remove(notice.world_rank, Presence::lost))
    hooks_.gone(notice.world_rank, true, {Code::peer_lost, notice.text});
  flood_own(std::move(notice));
  settle();
}

void ControlTree::flood_own(Notice notice) { spread({self_, log_.next_sequence(self_), std::move(notice)}, nullptr); }

Status ControlTree::take_notice(const Channel& channel, std::span<const std::byte> body) {
  SLUICE_TRY_ASSIGN(Flooded flooded, decode_flooded(body));
  if (!shape_.holds(flooded.origin) || !shape_.holds(flooded.notice.world_rank))
    return {Code::refused, "a notice of or about a rank that this job doesn't have"};
  if (peers_.empty()) {
    early_.push_back(std::move(flooded));
    return {};
  }
  spread(flooded, &channel);
  return {};
}

// To every neighbour but the source, and, when it is another rank's, to this rank; once.
void ControlTree::spread(const Flooded& flooded, const Channel* source) {
  const SharedBytes frame = shared(encode(flooded));
  if (!log_.add(flooded.origin, flooded.sequence, frame)) return;
  for (const auto& [rank, link] : links_)
    if (link != source) queue(*link, frame, flooded.notice.kind);
  if (flooded.origin == self_) return;
  if (learn(flooded) && !left_) hooks_.notice(flooded.notice);
}

// A neighbour that reads nothing (stopped) must not fill this process: first arrivals, then anything is dropped.
void ControlTree::queue(Channel& to, const SharedBytes& frame, NoticeKind kind) {
  const std::size_t most = kind == NoticeKind::arrival ? kArrivalsQueuedMax : kNoticesQueuedMax;
  if (channels_.bytes_queued(to) + frame->size() <= most) return channels_.send(to, frame);
  if (!std::exchange(drop_reported_, true))
    log(LogLevel::warn, self_, described(to.peer) + " has read no notices for long; further ones for it are dropped");
}

// Takes up what a notice says about a rank. True when it is news for the engine.
bool ControlTree::learn(const Flooded& flooded) {
  const Rank about = flooded.notice.world_rank;
  if (flooded.notice.kind == NoticeKind::peer_left) {
    const bool news = shape_.remove(about, Presence::left);
    if (news) hooks_.gone(about, false, {Code::peer_lost, flooded.notice.text});
    settle();
    return news;
  }
  if (flooded.notice.kind != NoticeKind::peer_lost || about == self_) return true;
  if (!shape_.remove(about, Presence::lost)) return false;
  hooks_.gone(about, true, {Code::peer_lost, flooded.notice.text});
  settle();
  return true;
}

void ControlTree::lost(Rank rank, const std::string& how) {
  if (!shape_.remove(rank, Presence::lost)) return;
  Notice notice;
  notice.kind = NoticeKind::peer_lost;
  notice.world_rank = rank;
  notice.code = Code::peer_lost;
  notice.text = described(rank) + " is lost: " + how + " (noticed by rank " + std::to_string(self_) + ")";
  log(LogLevel::info, self_, notice.text);
  if (const auto link = links_.find(rank); link != links_.end()) {
    channels_.close(*link->second);
    links_.erase(link);
  }
  flood_own(notice);
  hooks_.gone(rank, true, {Code::peer_lost, notice.text});
  hooks_.notice(notice);
}

// ---- leaving

void ControlTree::leave(std::function<void()> done) {
  if (left_) return;
  flood_own({NoticeKind::peer_left, 0, self_, Code::ok, described(self_) + " has left the job", {}});
  left_ = std::move(done);
  shape_.remove(self_, Presence::left);
  if (holds_upward_link()) stop_dialing();
  loop_.cancel(vigil_timer_);
  prober_.forget();
  loop_.after(kLeaveLinger, [this] { left_(); });
  settle();
}

// A leaver goes once it is a leaf of what is linked now: taking a leaf away cuts nobody off. Its neighbours see to that: a child
// that stays moves to its new parent and drops this link, one that leaves is itself a leaf sooner or later.
void ControlTree::check_left() {
  if (links_.size() > 1) return;
  if (dialing_) return;  // the farewell has no way out yet
  for (const auto& [rank, link] : std::exchange(links_, {})) channels_.finish(*link, std::chrono::milliseconds(500));
  if (channels_.count(Purpose::tree) == 0) return left_();
  loop_.cancel(leave_timer_);
  leave_timer_ = loop_.after(std::chrono::milliseconds(1), [this] { check_left(); });
}

std::string ControlTree::described(Rank rank) const {
  const PeerInfo& peer = peers_.at(static_cast<std::size_t>(rank));
  return "rank " + std::to_string(rank) + " (" + peer.host_name + ", process " + std::to_string(peer.pid) + ")";
}

}  // namespace sluice
