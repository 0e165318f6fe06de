// The root's side of joining: the roll of who is here, and what each is told.
//
//   Fails   for all at once, with one text, when the deadline of any participant is near (naming who is missing), when two
//           claim one rank or disagree about the number of ranks, and when one that had joined goes away again. A stranger, or a
//           joiner that can't prove the secret, changes nothing.
//   Address of ranks on this host that came by the Unix socket: the one by which the first other host reached the root.
//   Threads the loop's.
#pragma once

#include <optional>
#include <vector>

#include "comm/bootstrap/control_tree.h"
#include "comm/bootstrap/join_state.h"

namespace sluice {

class JoinRoot final : public ChannelOwner {
 public:
  // `self`: with its listeners open. `outcome` ok: table() is complete and the tree has started.
  JoinRoot(EventLoop& loop, Channels& channels, ControlTree& tree, int ranks, PeerInfo self, Nanoseconds deadline,
           JoinOutcome outcome);

  void subtree_ready();  // the tree's hook
  std::vector<PeerInfo> table() const;

  void opened(Channel& channel) override;
  Status frame(Channel& channel, FrameType type, std::span<const std::byte> body) override;
  void closed(Channel& channel, const Status& why) override;

 private:
  struct Seat {
    PeerInfo peer;
    Channel* channel = nullptr;    // nullptr: the root itself, or gone after the end
    std::uint32_t reached_at = 0;  // the root's address that it used
  };

  Status take(Channel& channel, const JoinRequest& request);
  Status check(const JoinRequest& request) const;
  void arm_deadline(Nanoseconds left);
  void give_addresses();
  void assign();
  void fail(const Status& why);
  std::string missing_text() const;

  EventLoop& loop_;
  Channels& channels_;
  ControlTree& tree_;
  std::vector<std::optional<Seat>> seats_;
  int seated_ = 1;
  Nanoseconds began_;
  Nanoseconds deadline_{0};  // absolute: the earliest of all participants
  std::uint64_t timer_ = 0;
  JoinOutcome outcome_;  // empty once called
};

}  // namespace sluice
