// The loop transport's own promises: replay from a seed, reordering between flows only, and each fault.
#include "transport/loop/loop_world.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace sluice {
namespace {

constexpr RingShape kShape{.slots = 4, .slot_bytes = 256};
constexpr FlowId kFlow{.communicator = 7, .lane = 1, .channel = 0};

void commit_number(OutFlow& out, std::uint32_t number) {
  std::memcpy(out.reserve(sizeof number), &number, sizeof number);
  out.commit({.digest = number, .bytes = sizeof number});
}

// What a run of `messages` on each of three flows looked like to the receiver: flow and number, in order of arrival.
struct Seen {
  std::vector<std::pair<int, std::uint32_t>> order;
  std::uint64_t trace = 0;
  Nanoseconds end{0};
};

Seen run_three_flows(std::uint64_t seed, std::uint32_t messages) {
  LoopWorld world(2, {.seed = seed});
  std::vector<OutFlow*> out;
  std::vector<InFlow*> in;
  for (std::uint8_t channel = 0; channel < 3; ++channel) {
    out.push_back(*world.transport(0).open_out(1, {.communicator = 7, .channel = channel}, kShape));
    in.push_back(*world.transport(1).open_in(0, {.communicator = 7, .channel = channel}, kShape));
  }
  Seen seen;
  while (seen.order.size() < 3 * messages) {
    for (OutFlow* flow : out)
      while (flow->committed() < messages && flow->room() > 0)
        commit_number(*flow, static_cast<std::uint32_t>(flow->committed()));
    world.transport(0).progress();
    world.transport(1).progress();
    for (int i = 0; i < 3; ++i)
      for (; in[i]->ready(); in[i]->release()) seen.order.emplace_back(i, in[i]->header().digest);
    world.advance(std::chrono::microseconds(10));
  }
  seen.trace = world.trace();
  seen.end = world.clock().now();
  return seen;
}

}  // namespace

TEST(LoopWorld, ReplaysARunFromItsSeed) {
  const Seen once = run_three_flows(42, 50);
  const Seen again = run_three_flows(42, 50);
  EXPECT_EQ(once.order, again.order);
  EXPECT_EQ(once.trace, again.trace);
  EXPECT_EQ(once.end, again.end);
}

TEST(LoopWorld, GivesOtherSeedsOtherOrders) {
  std::set<std::vector<std::pair<int, std::uint32_t>>> orders;
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Seen seen = run_three_flows(seed, 10);
    orders.insert(seen.order);
    traces.insert(seen.trace);
  }
  EXPECT_EQ(orders.size(), 20u);
  EXPECT_EQ(traces.size(), 20u);
}

TEST(LoopWorld, KeepsTheOrderOfEachFlow) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<std::uint32_t> next(3, 0);
    for (const auto& [flow, number] : run_three_flows(seed, 20).order)
      EXPECT_EQ(number, next[flow]++) << "seed " << seed;
  }
}

TEST(LoopWorld, DelaysEveryMessageWithinItsBounds) {
  LoopWorld world(2, {.seed = 3, .delay_min = Nanoseconds(1000), .delay_max = Nanoseconds(2000)});
  OutFlow* const out = *world.transport(0).open_out(1, kFlow, kShape);
  InFlow* const in = *world.transport(1).open_in(0, kFlow, kShape);
  commit_number(*out, 0);
  world.transport(0).progress();
  world.transport(1).progress();
  EXPECT_FALSE(in->ready());
  EXPECT_TRUE(world.advance(std::chrono::seconds(1)));
  world.transport(1).progress();
  EXPECT_TRUE(in->ready());
  EXPECT_GE(world.clock().now(), Nanoseconds(1000));
  EXPECT_LE(world.clock().now(), Nanoseconds(2000));
}

TEST(LoopWorld, MovesTheClockByAllWhenNothingIsUnderWay) {
  LoopWorld world(2);
  EXPECT_FALSE(world.advance(std::chrono::milliseconds(3)));
  EXPECT_EQ(world.clock().now(), std::chrono::milliseconds(3));
  EXPECT_EQ(world.pending(), 0);
  world.transport(0).wait(std::chrono::milliseconds(2));
  EXPECT_EQ(world.clock().now(), std::chrono::milliseconds(5));
  world.transport(0).wake();
  world.transport(0).wait(std::chrono::milliseconds(2));
  EXPECT_EQ(world.clock().now(), std::chrono::milliseconds(5));
}

TEST(LoopWorld, DoesNotJumpOverWhatARankHasNotTakenYet) {
  LoopWorld world(2);
  OutFlow* const out = *world.transport(0).open_out(1, kFlow, kShape);
  ASSERT_TRUE(world.transport(1).open_in(0, kFlow, kShape).ok());
  commit_number(*out, 0);
  EXPECT_TRUE(world.advance(std::chrono::hours(1)));  // also puts under way what nobody's progress() has seen
  EXPECT_EQ(world.pending(), 1);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(world.advance(std::chrono::hours(1)));
  EXPECT_LT(world.clock().now(), std::chrono::milliseconds(1));
}

TEST(LoopWorldFaults, TellEveryPeerOfADeathWithinASecond) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    LoopWorld world(4, {.seed = seed});
    OutFlow* const out = *world.transport(0).open_out(2, kFlow, kShape);
    InFlow* const in = *world.transport(2).open_in(0, kFlow, kShape);
    world.kill(0);
    commit_number(*out, 0);
    world.transport(0).progress();
    while (world.advance(std::chrono::seconds(5)))
      for (Rank rank = 1; rank < 4; ++rank) world.transport(rank).progress();
    EXPECT_FALSE(in->ready());
    for (Rank rank = 1; rank < 4; ++rank) EXPECT_EQ(world.transport(rank).peer_status(0).code(), Code::peer_lost);
    EXPECT_TRUE(world.transport(1).peer_status(2).ok());
    EXPECT_LE(world.clock().now(), std::chrono::seconds(6));
    EXPECT_EQ(world.transport(1).open_out(0, kFlow, kShape).error().code, Code::peer_lost);
  }
}

TEST(LoopWorldFaults, LetWhatWasUnderWayAtADeathArriveOrNot) {
  int arrived = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    LoopWorld world(2, {.seed = seed});
    OutFlow* const out = *world.transport(0).open_out(1, kFlow, kShape);
    InFlow* const in = *world.transport(1).open_in(0, kFlow, kShape);
    commit_number(*out, 0);
    world.transport(0).progress();
    world.kill(0);
    while (world.advance(std::chrono::seconds(5))) world.transport(1).progress();
    arrived += in->ready() ? 1 : 0;
  }
  EXPECT_GT(arrived, 20);
  EXPECT_LT(arrived, 80);
}

TEST(LoopWorldFaults, StallSilentlyWithoutALoss) {
  LoopWorld world(2);
  OutFlow* const out = *world.transport(0).open_out(1, kFlow, kShape);
  InFlow* const in = *world.transport(1).open_in(0, kFlow, kShape);
  commit_number(*out, 0);
  world.transport(0).progress();
  world.stall(0);
  EXPECT_FALSE(world.advance(std::chrono::minutes(10)));
  EXPECT_EQ(world.transport(1).progress(), 0u);
  EXPECT_FALSE(in->ready());
  EXPECT_TRUE(world.transport(1).peer_status(0).ok());
}

TEST(LoopWorldFaults, CutOneLinkAlone) {
  LoopWorld world(3);
  OutFlow* const out = *world.transport(0).open_out(2, kFlow, kShape);
  InFlow* const in = *world.transport(2).open_in(0, kFlow, kShape);
  world.cut(0, 1);
  EXPECT_EQ(world.transport(0).peer_status(1).code(), Code::peer_lost);
  EXPECT_EQ(world.transport(1).peer_status(0).code(), Code::peer_lost);
  commit_number(*out, 5);
  for (int i = 0; i < 4; ++i) {
    for (Rank rank = 0; rank < 3; ++rank) world.transport(rank).progress();
    world.advance(std::chrono::seconds(1));
  }
  world.transport(2).progress();
  EXPECT_TRUE(in->ready());
}

TEST(LoopWorldFaults, CorruptOneDigest) {
  LoopWorld world(2);
  OutFlow* const out = *world.transport(0).open_out(1, kFlow, kShape);
  InFlow* const in = *world.transport(1).open_in(0, kFlow, kShape);
  world.corrupt_next(0, 1);
  commit_number(*out, 5);
  commit_number(*out, 6);
  while (!in->ready(1)) {
    world.transport(0).progress();
    world.transport(1).progress();
    world.advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(in->header(0).digest, ~5u);
  EXPECT_EQ(in->header(1).digest, 6u);
}

TEST(LoopWorldFaults, RefuseHalvesOfDifferentShape) {
  LoopWorld world(2);
  ASSERT_TRUE(world.transport(0).open_out(1, kFlow, kShape).ok());
  ASSERT_TRUE(world.transport(1).open_in(0, kFlow, {.slots = 8, .slot_bytes = 256}).ok());
  EXPECT_EQ(world.transport(0).peer_status(1).code(), Code::refused);
  EXPECT_EQ(world.transport(1).peer_status(0).code(), Code::refused);
}

}  // namespace sluice
