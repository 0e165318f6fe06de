// The side of joining of every rank but the root: finds the root, proves the secret, waits for its place in the tree and for
// the table.
//
//   Places   on the root's host its Unix socket first, then each address with each port, round after round, with pauses, until
//            the deadline: the root may not be up yet, and its port may be another program's.
//   Refusal  a listener that ends the stream after our proof knows another secret. With one place to go that ends the join; with
//            several ports (a derived rendezvous) only when nothing else answers for kRefusalPatience.
//   Threads  the loop's.
#pragma once

#include <vector>

#include "comm/bootstrap/control_tree.h"
#include "comm/bootstrap/join_state.h"

namespace sluice {

inline constexpr Nanoseconds kRefusalPatience = std::chrono::seconds(5);

class JoinMember final : public ChannelOwner {
 public:
  // `plan`, borrowed, gets its listeners' names. The outcome is called once; ok: the table has come.
  JoinMember(EventLoop& loop, Channels& channels, ControlTree& tree, JoinPlan& plan, JoinOutcome outcome);

  void begin() { next_round(); }
  void table_arrived();  // the tree's hook

  void opened(Channel& channel) override;
  Status frame(Channel& channel, FrameType type, std::span<const std::byte> body) override;
  void closed(Channel& channel, const Status& why) override;

 private:
  void next_round();
  void list_places();
  void try_next();
  void end_of_round();
  Status introduce(Channel& channel);
  void finish(const Status& outcome);
  std::string waiting_text() const;

  EventLoop& loop_;
  Channels& channels_;
  ControlTree& tree_;
  JoinPlan& plan_;
  JoinOutcome outcome_;  // empty once called

  Rendezvous rendezvous_;
  std::vector<Endpoint> places_;
  std::size_t place_ = 0;
  Channel* root_ = nullptr;  // the stream that is tried, or that leads to the root
  bool introduced_ = false;
  bool assigned_ = false;
  bool refused_ = false;  // in this round, at the proof
  Nanoseconds refused_since_{0};
  std::string last_failure_;
  Nanoseconds pause_ = std::chrono::milliseconds(5);
  Nanoseconds deadline_;
  std::uint64_t timer_ = 0;
  std::uint64_t pause_timer_ = 0;
};

}  // namespace sluice
