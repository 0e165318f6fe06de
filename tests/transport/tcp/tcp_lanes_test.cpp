// Lanes over TCP: shares, order, bounds and marks.
#include <netinet/in.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "tests/transport/tcp/raw_peer.h"
#include "transport/tcp/socket_options.h"

namespace sluice {
namespace {

TEST_F(TcpAlone, LanesOfOneLinkShareByWeight) {
  constexpr RingShape kMany{.slots = 1024, .slot_bytes = 256};
  raw_->send(greeting_of(1, 3));
  const std::vector<std::uint32_t> weights{1, 2, 4};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const FlowId flow{.communicator = 20 + i};
    transport_->use_lane(flow.communicator, {.number = i + 1, .weight = weights[i]});
    raw_->send({.kind = FrameKind::open, .flow = flow, .shape = kMany});
    fill(**transport_->open_out(1, flow, kMany), 200);
  }
  std::vector<int> sent(3);
  for (const Frame& frame : frames_until(700))
    if (frame.kind == FrameKind::message && sent[0] + sent[1] + sent[2] < 700) ++sent[frame.flow.communicator - 20];
  EXPECT_NEAR(sent[0], 100, 3);
  EXPECT_NEAR(sent[1], 200, 3);
  EXPECT_NEAR(sent[2], 400, 3);
}

TEST_F(TcpAlone, RefusesALaneThatDoesNotExist) {
  const auto opened = transport_->open_out(1, {.communicator = 7, .lane = kLanes}, kShape);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, Code::invalid_argument);
}

// Rank 1 has a link for each of two lanes.
class TcpTwoLanes : public TcpAlone {
 protected:
  static constexpr std::uint8_t kUrgent = 1, kBulk = 3;
  static constexpr RingShape kLarge{.slots = 64, .slot_bytes = 1 << 17};
  void SetUp() override {
    TcpAlone::SetUp();
    for (const std::uint8_t lane : {kUrgent, kBulk}) link(lane);
  }
  void link(std::uint8_t lane) {
    test::StreamPair pair = test::tcp_pair();
    ends_[lane] = pair.a.get();
    transport_->adopt({1, lane}, std::move(pair.a));
    peers_[lane] = std::make_unique<RawPeer>(std::move(pair.b));
    const FlowId flow = flow_of(lane);
    peers_[lane]->send(greeting_of(1, 3));
    peers_[lane]->send({.kind = FrameKind::open, .flow = flow, .shape = kLarge});
    transport_->use_lane(flow.communicator, {.number = lane, .priority = lane, .in_flight = 1 << 15});
    flows_[lane] = *transport_->open_out(1, flow, kLarge);
  }
  static FlowId flow_of(std::uint8_t lane) { return {.communicator = std::uint64_t{50} + lane, .lane = lane}; }
  std::size_t messages_at(std::uint8_t lane) {
    std::size_t count = 0;
    for (const Frame& frame : peers_[lane]->frames()) count += frame.kind == FrameKind::message ? 1 : 0;
    return count;
  }
  // While the bulk lane sends.
  std::size_t most_in_kernel() {
    fill(*flows_[kBulk], kLarge.slot_bytes);
    std::size_t most = 0, bulk = 0;
    EXPECT_TRUE(until([&] {
      most = std::max(most, look_at(ends_[kBulk]).in_kernel);
      bulk += messages_at(kBulk);
      return bulk >= 60;
    })) << bulk;
    return most;
  }
  std::map<std::uint8_t, std::unique_ptr<RawPeer>> peers_;
  std::map<std::uint8_t, OutFlow*> flows_;
  std::map<std::uint8_t, int> ends_;
};

TEST_F(TcpTwoLanes, ALaneWaitsWhileTheNetworkDoesNotTakeTheMessagesOfAMoreUrgentOne) {
  fill(*flows_[kUrgent], kLarge.slot_bytes);
  for (int i = 0; i < 200; ++i) transport_->progress();  // the socket is full
  fill(*flows_[kBulk], kLarge.slot_bytes);
  std::size_t bulk = 0;
  for (int i = 0; i < 400; ++i) {  // its peer takes all that comes
    transport_->progress();
    bulk += messages_at(kBulk);
    std::this_thread::sleep_for(100us);
  }
  EXPECT_LE(bulk, 8U);  // what it is guaranteed, of 64, however slow this machine is
  EXPECT_TRUE(until([&] {
    messages_at(kUrgent);
    bulk += messages_at(kBulk);
    return bulk >= 60;
  })) << bulk;
}

// Rank 1 has a link for the bulk lane, and no other rank is reached.
class TcpOneLane : public TcpTwoLanes {
 protected:
  void SetUp() override { link(kBulk); }
};

TEST_F(TcpOneLane, ALaneWaitsWhileAnotherRankOfTheHostWantsTheNetwork) {
  transport_->claim_network({.lane = kUrgent, .held_below = kUrgent});
  fill(*flows_[kBulk], kLarge.slot_bytes);
  std::size_t bulk = 0;
  for (int i = 0; i < 200; ++i) {
    transport_->progress();
    bulk += messages_at(kBulk);
    std::this_thread::sleep_for(100us);
  }
  EXPECT_LE(bulk, 8U);  // what it is guaranteed, of 64
  EXPECT_TRUE(transport_->unsent());
  transport_->claim_network({});
  EXPECT_TRUE(until([&] {
    bulk += messages_at(kBulk);
    return bulk == kLarge.slots;
  })) << bulk;
  EXPECT_FALSE(transport_->unsent());
}

TEST_F(TcpOneLane, WhatALaneHasInTheKernelIsBoundedWhereAnotherRankWantedTheNetworkLately) {
  transport_->claim_network({.lane = kUrgent});
  transport_->claim_network({});
  EXPECT_LE(most_in_kernel(), (1U << 15) * 3 / 2);
}

TEST_F(TcpOneLane, WhatALaneHasInTheKernelIsNotBoundedAlone) { EXPECT_GT(most_in_kernel(), (1U << 15) * 3); }

TEST_F(TcpTwoLanes, AMoreUrgentLaneDoesNotWaitForAnotherRank) {
  transport_->claim_network({.lane = kUrgent, .held_below = kUrgent});
  fill(*flows_[kUrgent], 64);
  std::size_t urgent = 0;
  EXPECT_TRUE(until([&] { return (urgent += messages_at(kUrgent)) == kLarge.slots; })) << urgent;
}

TEST_F(TcpTwoLanes, WhatALessUrgentLaneHasInTheKernelIsBounded) {
  flows_[kUrgent]->commit({.digest = 1, .bytes = 64});
  ASSERT_TRUE(until([&] { return messages_at(kUrgent) == 1; }));
  const std::size_t most = most_in_kernel();
  EXPECT_LE(most, (1U << 15) * 3 / 2);
  EXPECT_GT(most, 0U);
}

TEST_F(TcpTwoLanes, EveryLaneMarksWhatItSends) {
  ASSERT_TRUE(until([&] { return !peers_[kUrgent]->frames().empty(); }));
  for (const std::uint8_t lane : {kUrgent, kBulk}) {
    int mark = 0;
    socklen_t bytes = sizeof mark;
    ASSERT_EQ(::getsockopt(ends_[lane], IPPROTO_IP, IP_TOS, &mark, &bytes), 0);
    EXPECT_EQ(mark & ~3, dscp_of_lane(lane) << 2);
  }
  int priority = 0;
  socklen_t bytes = sizeof priority;
  ASSERT_EQ(::getsockopt(ends_[kUrgent], SOL_SOCKET, SO_PRIORITY, &priority, &bytes), 0);
  EXPECT_EQ(priority, 6);
}

TEST_F(TcpTwoLanes, APeerThatLeavesIsReadToItsEndOnEveryLane) {
  InFlow& in = **transport_->open_in(1, flow_of(kBulk), kLarge);
  ASSERT_TRUE(until([&] { return !peers_[kBulk]->frames().empty(); }));
  peers_[kBulk]->send(message_of(flow_of(kBulk), 0, 10), 10);
  peers_[kUrgent]->close();
  ASSERT_TRUE(until([&] { return !transport_->peer_status(1).ok(); }));
  EXPECT_TRUE(until([&] { return in.ready(); }));
}

}  // namespace
}  // namespace sluice
