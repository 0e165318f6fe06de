// What every transport promises of peers that are lost or failed: their link alone is over.
#include <gtest/gtest.h>

#include <string>

#include "tests/conformance/conformance.h"

namespace sluice::test {

class TransportPeers : public OnTransport {};
INSTANTIATE_TEST_SUITE_P(Transports, TransportPeers, testing::ValuesIn(world_kinds()), name_of_kind);

TEST_P(TransportPeers, TellsOfAPeerThatIsGoneAndGoesOnWithOthers) {
  World& world = make(3);
  OutFlow& to_lost = out(0, 1, flow(1));
  InFlow& from_lost = in(1, 0, flow(1));
  in(0, 1, flow(1));
  out(1, 0, flow(1));
  OutFlow& sender = out(0, 2, flow(1));
  InFlow& receiver = in(0, 2, flow(1));
  world.settle();
  world.drop(1);
  ASSERT_TRUE(world.until([&] { return !world.transport(0).peer_status(1).ok(); }));
  EXPECT_EQ(world.transport(0).peer_status(1).code(), Code::peer_lost);
  EXPECT_NE(world.transport(0).peer_status(1).text().find("rank 1"), std::string::npos)
      << world.transport(0).peer_status(1).text();
  EXPECT_TRUE(world.transport(0).peer_status(2).ok());
  EXPECT_EQ(world.transport(0).open_out(1, flow(2), kShape).error().code, Code::peer_lost);
  EXPECT_EQ(world.transport(0).open_in(1, flow(2), kShape).error().code, Code::peer_lost);
  commit_message(to_lost, 1, 0, 10);  // goes nowhere, harms nobody
  EXPECT_FALSE(from_lost.ready());
  commit_message(sender, 2, 0, 10);
  ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
  EXPECT_TRUE(holds_message(receiver, 2, 0, 10));
  world.transport(0).close_flows(1);
}

TEST_P(TransportPeers, KeepsWhatArrivedBeforeThePeerWasGone) {
  World& world = make(2);
  OutFlow& sender = out(1, 0, flow(1));
  InFlow& receiver = in(1, 0, flow(1));
  for (std::uint64_t i = 0; i < 3; ++i) commit_message(sender, 1, i, 200);
  ASSERT_TRUE(world.until([&] { return receiver.ready(2); }));
  world.drop(1);
  ASSERT_TRUE(world.until([&] { return !world.transport(0).peer_status(1).ok(); }));
  ASSERT_TRUE(receiver.ready(2));
  for (std::uint64_t i = 0; i < 3; ++i) EXPECT_TRUE(holds_message(receiver, 1, i, 200, i));
  receiver.release(3);
}

TEST_P(TransportPeers, StopsTrafficWithAFailedPeerAlone) {
  World& world = make(3);
  OutFlow& sender = out(0, 2, flow(1));
  InFlow& receiver = in(0, 2, flow(1));
  out(0, 1, flow(1));
  in(0, 1, flow(1));
  world.settle();
  world.transport(0).fail_peer(1, {Code::peer_lost, "rank 1 was lost, says rank 2"});
  ASSERT_TRUE(world.until([&] { return !world.transport(0).peer_status(1).ok(); }));
  EXPECT_EQ(world.transport(0).peer_status(1).text(), "rank 1 was lost, says rank 2");
  EXPECT_TRUE(world.until([&] { return world.transport(1).peer_status(0).code() == Code::peer_lost; }));
  EXPECT_EQ(world.transport(0).open_out(1, flow(2), kShape).error().code, Code::peer_lost);
  commit_message(sender, 2, 0, 10);
  ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
  EXPECT_TRUE(holds_message(receiver, 2, 0, 10));
}

TEST_P(TransportPeers, FailsAPeerItNeverMet) {
  World& world = make(2);
  world.transport(0).fail_peer(1, {Code::peer_lost, "rank 1 never came"});
  world.settle();
  EXPECT_EQ(world.transport(0).open_out(1, flow(1), kShape).error().code, Code::peer_lost);
}

}  // namespace sluice::test
