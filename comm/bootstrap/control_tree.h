// The control tree of one rank: its links to parent and children, notices flooded along them, the noticing of losses, and
// mending.
//
//   Forming   a child dials its parent and says `ready` once its own children have; when the root's children are ready the
//             table of peers flows down, and whoever has it has joined.
//   Flooding  a notice goes to every neighbour but the one it came from. A new neighbour is first told the log of recent
//             notices, so what was flooded while the tree was torn still arrives everywhere, once.
//   Losses    a neighbour whose stream ends without farewell is lost. A neighbour on another machine that has been silent, and
//             a rank that should be a neighbour by now but is not, are probed: see prober.h.
//   Leaving   a farewell is flooded; children move to the next ancestor, keeping the old link until the new one stands; a leaver
//             stays until it is a leaf, at most kLeaveLinger, so that no farewell is lost with a link.
//   Cost      a notice: P-1 messages in all, 2 log2 P hops at most. A wake-up every kVigilPeriod only where links cross machines
//             or a neighbour is missing.
//   Limits    a stopped (SIGSTOP) inner rank passes nothing on until it continues.
//   Threads   the loop's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "comm/bootstrap/channels.h"
#include "comm/bootstrap/flood_log.h"
#include "comm/bootstrap/prober.h"
#include "comm/bootstrap/tree.h"

namespace sluice {

inline constexpr Nanoseconds kVigilPeriod = std::chrono::milliseconds(200);
inline constexpr Nanoseconds kMissingPatience = std::chrono::milliseconds(100);  // then it is probed, again and again
inline constexpr std::uint32_t kSilenceMs = 1100;                                // keepalive answers come every 1000
inline constexpr Nanoseconds kFarewellGrace = std::chrono::milliseconds(50);  // whoever leaves is seldom the only one
inline constexpr Nanoseconds kLeaveLinger = std::chrono::seconds(1);
inline constexpr std::size_t kArrivalsQueuedMax = std::size_t{4} << 20;  // bytes towards one neighbour
inline constexpr std::size_t kNoticesQueuedMax = std::size_t{64} << 20;

class ControlTree final : public ChannelOwner {
 public:
  struct Hooks {
    std::function<void()> subtree_ready;                       // at the root: everybody is connected
    std::function<void(std::vector<PeerInfo>)> table_arrived;  // elsewhere: joined
    std::function<void(const Notice&)> notice;                 // of others, and losses noticed here
    std::function<void(Rank, bool lost, const Status&)> gone;  // lost or left, once each
  };

  // `host_id`: of this rank; neighbours with the same are reached by their Unix socket.
  ControlTree(EventLoop& loop, Channels& channels, Rank self, int ranks, std::uint64_t host_id, Hooks hooks);

  // Forming.
  void connect_to_parent(Rank parent, const PeerInfo& peer);
  void start(std::vector<PeerInfo> peers);  // at the root, after subtree_ready

  void flood(Notice notice);
  // Says farewell; `done` is called when this rank may go, perhaps more than once.
  void leave(std::function<void()> done);

  void opened(Channel& channel) override;
  Status frame(Channel& channel, FrameType type, std::span<const std::byte> body) override;
  void closed(Channel& channel, const Status& why) override;

 private:
  bool linked(Rank rank) const { return links_.contains(rank); }
  void check_ready();
  Status take_table(Channel& channel, std::span<const std::byte> body);
  void joined(std::vector<PeerInfo> peers);

  Status take_notice(const Channel& channel, std::span<const std::byte> body);
  void spread(const Flooded& flooded, const Channel* source);
  void queue(Channel& to, const SharedBytes& frame, NoticeKind kind);
  void flood_own(Notice notice);
  bool learn(const Flooded& flooded);
  void lost(Rank rank, const std::string& how);

  void settle();
  void reach_parent(Rank parent);
  void dial_parent();
  void stop_dialing();
  bool holds_upward_link() const;
  void drop_stale_links(Rank parent);
  void note_missing(std::optional<Rank> parent);
  void keep_vigil();
  void vigil();
  void judge(const std::vector<Prober::Answer>& answers);
  void check_left();

  Endpoint endpoint(Rank rank) const;
  std::string described(Rank rank) const;

  EventLoop& loop_;
  Channels& channels_;
  Rank self_;
  std::uint64_t host_id_;
  TreeShape shape_;
  Hooks hooks_;
  FloodLog log_;
  Prober prober_;
  std::vector<PeerInfo> peers_;  // empty while forming
  PeerInfo forming_parent_;
  std::map<Rank, Channel*> links_;       // open ones; dialed by the higher rank
  std::map<Rank, bool> ready_children_;  // forming
  std::vector<Flooded> early_;           // notices that came before the table
  bool ready_told_ = false;

  std::optional<Rank> dialing_;  // the parent that is being dialed or waited for
  Channel* dial_ = nullptr;
  std::uint64_t dial_timer_ = 0;
  Nanoseconds dial_pause_{0};
  std::map<Rank, Nanoseconds> missing_;  // should be a neighbour, since when
  std::uint64_t vigil_timer_ = 0;

  std::function<void()> left_;  // set while leaving
  std::uint64_t leave_timer_ = 0;
  bool drop_reported_ = false;
};

}  // namespace sluice
