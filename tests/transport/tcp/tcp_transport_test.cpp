// What a TCP transport says, in which order, and what it does to an enemy.
#include "transport/tcp/tcp_transport.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/transport/tcp/raw_peer.h"

namespace sluice {
TEST_F(TcpAlone, SpeaksAsWritten) {
  OutFlow& out = **transport_->open_out(1, kFlow, kShape);
  ASSERT_TRUE(transport_->open_in(1, kFlow, kShape).ok());
  out.commit({.digest = 11, .bytes = 100});
  out.commit({.digest = 12, .bytes = 0});
  EXPECT_EQ(frames_until(2),
            (std::vector<Frame>{greeting_of(0, 3), {.kind = FrameKind::open, .flow = kFlow, .shape = kShape}}));
  raw_->send(greeting_of(1, 3));
  raw_->send({.kind = FrameKind::open, .flow = kFlow, .shape = kShape});
  const std::vector<Frame> got = frames_until(2);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0], (Frame{.kind = FrameKind::message, .flow = kFlow, .number = 0, .digest = 11, .bytes = 100}));
  EXPECT_EQ(got[1], (Frame{.kind = FrameKind::message, .flow = kFlow, .number = 1, .digest = 12, .bytes = 0}));
  raw_->send({.kind = FrameKind::credit, .flow = kFlow, .number = 2});
  EXPECT_TRUE(until([&] { return out.released() == 2; }));
}

TEST_F(TcpAlone, SendsNothingToWhoHasNotOpened) {
  OutFlow& out = **transport_->open_out(1, kFlow, kShape);
  raw_->send(greeting_of(1, 3));
  while (out.room() > 0) out.commit({.digest = 1, .bytes = 256});
  for (int i = 0; i < 2000; ++i) transport_->progress();
  EXPECT_EQ(frames_until(1), std::vector<Frame>{greeting_of(0, 3)});
}

TEST_F(TcpAlone, FlowsOfALaneTakeTurns) {
  raw_->send(greeting_of(1, 3));
  for (std::uint8_t channel = 0; channel < 2; ++channel) {
    const FlowId flow{.communicator = 7, .channel = channel};
    raw_->send({.kind = FrameKind::open, .flow = flow, .shape = kShape});
    fill(**transport_->open_out(1, flow, kShape), 200);
  }
  std::vector<int> channels;
  for (const Frame& frame : frames_until(9))
    if (frame.kind == FrameKind::message) channels.push_back(frame.flow.channel);
  ASSERT_EQ(channels.size(), 8U);
  EXPECT_EQ(std::count(channels.begin(), channels.begin() + 4, 0), 2);
}

TEST_F(TcpAlone, ReturnsManyCreditsInOneFrame) {
  InFlow& in = **transport_->open_in(1, kFlow, kShape);
  frames_until(2);
  raw_->send(greeting_of(1, 3));
  for (std::uint64_t i = 0; i < 4; ++i) raw_->send(message_of(kFlow, i, 10), 10);
  ASSERT_TRUE(until([&] { return in.ready(3); }));
  in.release(4);
  EXPECT_EQ(frames_until(1), (std::vector<Frame>{{.kind = FrameKind::credit, .flow = kFlow, .number = 4}}));
}

TEST_F(TcpAlone, KeepsRingsWithinItsBudget) {
  constexpr RingShape kLarge{.slots = 40, .slot_bytes = 1 << 20};
  ASSERT_TRUE(transport_->open_out(1, {.communicator = 1}, kLarge).ok());
  const auto second = transport_->open_in(1, {.communicator = 2}, kLarge);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::out_of_resource);
  EXPECT_NE(second.error().text.find("SLUICE_ARENA_BYTES"), std::string::npos);
  transport_->close_flows(1);
  EXPECT_TRUE(transport_->open_in(1, {.communicator = 2}, kLarge).ok());
}

TEST_F(TcpAlone, EndsAFrameThatHasBegunWhenItsFlowCloses) {
  constexpr RingShape kLarge{.slots = 8, .slot_bytes = 1 << 20};
  const FlowId other{.communicator = 8};
  OutFlow& out = **transport_->open_out(1, kFlow, kLarge);
  OutFlow& next = **transport_->open_out(1, other, kShape);
  raw_->send(greeting_of(1, 3));
  raw_->send({.kind = FrameKind::open, .flow = kFlow, .shape = kLarge});
  raw_->send({.kind = FrameKind::open, .flow = other, .shape = kShape});
  while (out.room() > 0) out.commit({.digest = 1, .bytes = kLarge.slot_bytes});
  for (int i = 0; i < 200; ++i) transport_->progress();  // until the socket is full, in the middle of a message
  transport_->close_flows(kFlow.communicator);
  next.commit({.digest = 77, .bytes = 1});
  bool came = false;
  EXPECT_TRUE(until([&] {
    for (const Frame& frame : raw_->frames()) came = came || (frame.kind == FrameKind::message && frame.digest == 77);
    return came;
  }));
}

TEST_F(TcpAlone, TakesOneStreamPerPeer) {
  test::StreamPair second = test::tcp_pair();
  transport_->adopt({1}, std::move(second.a));
  for (int i = 0; i < 100; ++i) transport_->progress();
  char byte = 0;
  EXPECT_EQ(::recv(second.b.get(), &byte, 1, 0), 0);  // closed
  EXPECT_TRUE(transport_->peer_status(1).ok());
  transport_->adopt({17}, test::tcp_pair().a);
  transport_->adopt({0}, test::tcp_pair().a);
  transport_->adopt({-1}, {});
  transport_->progress();
  expect_good_peer_undisturbed();
}

// What an enemy sends, and what the refusal must speak of. The flow 7 is open both ways with 4 slots of 256 bytes, flow
// 8 was closed.
struct TcpAttack {
  std::string name;
  std::function<void(RawPeer&)> act;
  Code code = Code::refused;
  std::string says;
};
void PrintTo(const TcpAttack& attack, std::ostream* out) { *out << attack.name; }

class TcpUnderAttack : public TcpAlone, public testing::WithParamInterface<TcpAttack> {};

TEST_P(TcpUnderAttack, LosesThatLinkAlone) {
  ASSERT_TRUE(transport_->open_in(1, {.communicator = 8}, kShape).ok());
  OutFlow& out = **transport_->open_out(1, kFlow, kShape);
  InFlow& in = **transport_->open_in(1, kFlow, kShape);
  frames_until(3);
  transport_->close_flows(8);
  GetParam().act(*raw_);
  ASSERT_TRUE(until([&] { return !transport_->peer_status(1).ok(); })) << "not noticed";
  EXPECT_EQ(transport_->peer_status(1).code(), GetParam().code);
  EXPECT_NE(transport_->peer_status(1).text().find(GetParam().says), std::string::npos)
      << transport_->peer_status(1).text();
  EXPECT_NE(transport_->peer_status(1).text().find("rank 1"), std::string::npos);
  while (out.room() > 0) out.commit({.digest = 1, .bytes = 10});
  for (; in.ready(); in.release()) EXPECT_LE(in.header().bytes, kShape.slot_bytes);
  expect_good_peer_undisturbed();
}

const std::vector<TcpAttack> kAttacks{
    {"noise", [](RawPeer& peer) { peer.send_bytes(std::vector<std::byte>(4096, std::byte{0x5a})); }, Code::refused,
     "not a frame"},
    {"no_greeting", [](RawPeer& peer) { peer.send(message_of(kFlow, 0, 10), 10); }, Code::refused,
     "before the greeting"},
    {"wrong_rank", [](RawPeer& peer) { peer.send(greeting_of(2, 3)); }, Code::refused, "rank 2 of 3"},
    {"wrong_world", [](RawPeer& peer) { peer.send(greeting_of(1, 4)); }, Code::refused, "rank 1 of 4"},
    {"greeting_twice", [](RawPeer& peer) { peer.send(greeting_of(1, 3)), peer.send(greeting_of(1, 3)); }, Code::refused,
     "second greeting"},
    {"unknown_kind",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3));
       FrameBytes bytes = encode(message_of(kFlow, 0, 0));
       bytes[4] = std::byte{9};
       peer.send_bytes({bytes.begin(), bytes.end()});
     },
     Code::refused, "unknown kind 9"},
    {"unknown_flow",
     [](RawPeer& peer) { peer.send(greeting_of(1, 3)), peer.send(message_of({.communicator = 9}, 0, 10), 10); },
     Code::refused, "not open here"},
    {"payload_larger_than_the_slot",
     [](RawPeer& peer) { peer.send(greeting_of(1, 3)), peer.send(message_of(kFlow, 0, 257), 257); }, Code::refused,
     "257 bytes"},
    {"payload_larger_than_any_slot",
     [](RawPeer& peer) { peer.send(greeting_of(1, 3)), peer.send(message_of(kFlow, 0, 0xffffffff)); }, Code::refused,
     "more than any slot"},
    {"number_skipped", [](RawPeer& peer) { peer.send(greeting_of(1, 3)), peer.send(message_of(kFlow, 1, 10), 10); },
     Code::refused, "message 1"},
    {"number_twice",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send(message_of(kFlow, 0, 1), 1), peer.send(message_of(kFlow, 0, 1), 1);
     },
     Code::refused, "message 0"},
    {"no_credit",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3));
       for (std::uint64_t i = 0; i < 5; ++i) peer.send(message_of(kFlow, i, 10), 10);
     },
     Code::refused, "without a credit"},
    {"credit_for_nothing_sent",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send({.kind = FrameKind::credit, .flow = kFlow, .number = 1});
     },
     Code::refused, "credit up to message 1"},
    {"credit_of_unknown_flow",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send({.kind = FrameKind::credit, .flow = {.communicator = 9}, .number = 1});
     },
     Code::refused, "not open here"},
    {"open_twice",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3));
       for (int i = 0; i < 2; ++i) peer.send({.kind = FrameKind::open, .flow = kFlow, .shape = kShape});
     },
     Code::refused, "opened twice"},
    {"open_of_unknown_flow_twice",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3));
       for (int i = 0; i < 2; ++i) peer.send({.kind = FrameKind::open, .flow = {.communicator = 9}, .shape = kShape});
     },
     Code::refused, "opened twice"},
    {"open_with_another_shape",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send({.kind = FrameKind::open, .flow = kFlow, .shape = {8, 256}});
     },
     Code::refused, "8 slots of 256"},
    {"open_with_an_impossible_shape",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send({.kind = FrameKind::open, .flow = kFlow, .shape = {0, 0}});
     },
     Code::refused, "0 slots"},
    {"opens_without_end",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3));
       std::vector<std::byte> many;
       for (std::uint64_t i = 0; i <= (1 << 16); ++i) {
         const FrameBytes bytes =
             encode({.kind = FrameKind::open, .flow = {.communicator = 1000 + i}, .shape = kShape});
         many.insert(many.end(), bytes.begin(), bytes.end());
       }
       peer.push(std::move(many));
     },
     Code::refused, "flows opened"},
    {"late_message_of_a_closed_flow_then_noise",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send(message_of({.communicator = 8}, 0, 200), 200);  // legal: thrown away
       peer.send(message_of(kFlow, 0, 10), 10);
       peer.send_bytes(std::vector<std::byte>(64, std::byte{1}));
     },
     Code::refused, "not a frame"},
    {"closes_at_once", [](RawPeer& peer) { peer.close(); }, Code::peer_lost, "closed the link"},
    {"closes_in_a_header",
     [](RawPeer& peer) {
       peer.send(greeting_of(1, 3)), peer.send_bytes(std::vector<std::byte>(1, std::byte{0x53})), peer.close();
     },
     Code::peer_lost, ""},
    {"closes_in_a_payload",
     [](RawPeer& peer) { peer.send(greeting_of(1, 3)), peer.send(message_of(kFlow, 0, 100), 99), peer.close(); },
     Code::peer_lost, ""},
};
INSTANTIATE_TEST_SUITE_P(Attacks, TcpUnderAttack, testing::ValuesIn(kAttacks),
                         [](const auto& attack) { return attack.param.name; });

}  // namespace sluice
