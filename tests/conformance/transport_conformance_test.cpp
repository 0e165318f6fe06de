// What every transport promises of its flows, tried on each. A new transport is one line in world_kinds().
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "tests/conformance/conformance.h"

namespace sluice::test {

using TransportConformance = OnTransport;
INSTANTIATE_TEST_SUITE_P(Transports, TransportConformance, testing::ValuesIn(world_kinds()), name_of_kind);

TEST_P(TransportConformance, KeepsTheOrderAndBytesOfAFlow) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  std::uint64_t got = 0;
  ASSERT_TRUE(world.until([&] {
    while (sender.committed() < 2000 && sender.room() > 0)
      commit_message(sender, 1, sender.committed(), size_of(1, sender.committed(), kShape.slot_bytes));
    for (; receiver.ready(); receiver.release(), ++got)
      EXPECT_TRUE(holds_message(receiver, 1, got, size_of(1, got, kShape.slot_bytes)));
    return got == 2000 || testing::Test::HasFailure();
  }));
}

TEST_P(TransportConformance, CarriesEveryPayloadSizeOfASlot) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  std::uint32_t got = 0;
  ASSERT_TRUE(world.until([&] {
    while (sender.committed() <= kShape.slot_bytes && sender.room() > 0)
      commit_message(sender, 9, sender.committed(), static_cast<std::uint32_t>(sender.committed()));
    for (; receiver.ready(); receiver.release(), ++got) EXPECT_TRUE(holds_message(receiver, 9, got, got));
    return got == kShape.slot_bytes + 1 || testing::Test::HasFailure();
  }));
}

TEST_P(TransportConformance, CarriesLargeSlots) {
  World& world = make(2);
  constexpr RingShape kLarge{.slots = 3, .slot_bytes = 1 << 20};
  OutFlow& sender = out(0, 1, flow(1), kLarge);
  InFlow& receiver = in(0, 1, flow(1), kLarge);
  std::uint64_t got = 0;
  ASSERT_TRUE(world.until([&] {
    while (sender.committed() < 12 && sender.room() > 0)
      commit_message(sender, 3, sender.committed(),
                     kLarge.slot_bytes - static_cast<std::uint32_t>(sender.committed() % 3));
    for (; receiver.ready(); receiver.release(), ++got)
      EXPECT_TRUE(holds_message(receiver, 3, got, kLarge.slot_bytes - static_cast<std::uint32_t>(got % 3)));
    return got == 12 || testing::Test::HasFailure();
  }));
}

TEST_P(TransportConformance, WorksWithOneSlot) {
  World& world = make(2);
  constexpr RingShape kOne{.slots = 1, .slot_bytes = 64};
  OutFlow& sender = out(0, 1, flow(1), kOne);
  InFlow& receiver = in(0, 1, flow(1), kOne);
  std::uint64_t got = 0;
  ASSERT_TRUE(world.until([&] {
    if (sender.committed() < 100 && sender.room() > 0) commit_message(sender, 4, sender.committed(), 64);
    if (receiver.ready()) {
      EXPECT_TRUE(holds_message(receiver, 4, got++, 64));
      receiver.release();
    }
    return got == 100 || testing::Test::HasFailure();
  }));
}

TEST_P(TransportConformance, NeverHoldsMoreThanItsCredits) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) {
    ASSERT_EQ(sender.room(), kShape.slots - i);
    commit_message(sender, 1, i, 8);
  }
  EXPECT_EQ(sender.room(), 0u);
  ASSERT_TRUE(world.until([&] { return receiver.ready(kShape.slots - 1); }));
  world.settle();
  EXPECT_EQ(sender.room(), 0u);
  EXPECT_EQ(sender.released(), 0u);
  EXPECT_FALSE(receiver.ready(kShape.slots));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) EXPECT_TRUE(holds_message(receiver, 1, i, 8, i));
}

TEST_P(TransportConformance, GivesRoomBackAfterEachRelease) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) commit_message(sender, 1, i, 8);
  for (std::uint32_t i = 0; i < kShape.slots; ++i) {
    ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
    receiver.release();
    ASSERT_TRUE(world.until([&] { return sender.released() == i + 1; }));
    EXPECT_EQ(sender.room(), i + 1);
  }
}

TEST_P(TransportConformance, LetsAFullFlowStopNoOther) {
  World& world = make(2);
  OutFlow& full = out(0, 1, flow(1, 0, 0));
  InFlow& unread = in(0, 1, flow(1, 0, 0));
  OutFlow& sender = out(0, 1, flow(1, 0, 1));
  InFlow& receiver = in(0, 1, flow(1, 0, 1));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) commit_message(full, 1, i, 256);
  std::uint64_t got = 0;
  ASSERT_TRUE(world.until([&] {
    while (sender.committed() < 100 && sender.room() > 0) commit_message(sender, 2, sender.committed(), 256);
    for (; receiver.ready(); receiver.release(), ++got) EXPECT_TRUE(holds_message(receiver, 2, got, 256));
    return got == 100 || testing::Test::HasFailure();
  }));
  EXPECT_EQ(full.room(), 0u);
  ASSERT_TRUE(world.until([&] { return unread.ready(kShape.slots - 1); }));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) EXPECT_TRUE(holds_message(unread, 1, i, 256, i));
}

TEST_P(TransportConformance, KeepsFlowsApartByEveryPartOfTheirName) {
  World& world = make(3);
  struct Flow {
    OutFlow* out;
    InFlow* in;
  };
  std::vector<Flow> flows;
  for (const FlowId id : {flow(1, 0, 0), flow(2, 0, 0), flow(1, 1, 0), flow(1, 0, 1), flow(1, 3, kPointToPointChannel)})
    for (const auto& [from, to] : std::vector<std::pair<Rank, Rank>>{{0, 1}, {1, 0}, {0, 2}, {2, 1}})
      flows.push_back({&out(from, to, id), &in(from, to, id)});
  for (std::size_t i = 0; i < flows.size(); ++i)
    for (std::uint64_t number = 0; number < 3; ++number)
      commit_message(*flows[i].out, i, number, size_of(i, number, 256));
  ASSERT_TRUE(world.until(
      [&] { return std::all_of(flows.begin(), flows.end(), [](const Flow& each) { return each.in->ready(2); }); }));
  for (std::size_t i = 0; i < flows.size(); ++i)
    for (std::uint64_t number = 0; number < 3; ++number)
      EXPECT_TRUE(holds_message(*flows[i].in, i, number, size_of(i, number, 256), number)) << "flow " << i;
}

TEST_P(TransportConformance, KeepsWhatIsCommittedBeforeThePeerOpened) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) commit_message(sender, 1, i, 100);
  world.settle();
  EXPECT_EQ(sender.room(), 0u);
  InFlow& receiver = in(0, 1, flow(1));
  ASSERT_TRUE(world.until([&] { return receiver.ready(kShape.slots - 1); }));
  for (std::uint32_t i = 0; i < kShape.slots; ++i) EXPECT_TRUE(holds_message(receiver, 1, i, 100, i));
}

TEST_P(TransportConformance, LetsTheReceiverOpenFirst) {
  World& world = make(2);
  InFlow& receiver = in(0, 1, flow(1));
  EXPECT_FALSE(receiver.ready());
  world.settle();
  EXPECT_FALSE(receiver.ready());
  OutFlow& sender = out(0, 1, flow(1));
  commit_message(sender, 1, 0, 10);
  ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
  EXPECT_TRUE(holds_message(receiver, 1, 0, 10));
}

TEST_P(TransportConformance, SendsToItself) {
  World& world = make(1);
  OutFlow& sender = out(0, 0, flow(1));
  commit_message(sender, 1, 0, 10);
  InFlow& receiver = in(0, 0, flow(1));
  std::uint64_t got = 0;
  ASSERT_TRUE(world.until([&] {
    while (sender.committed() < 50 && sender.room() > 0) commit_message(sender, 1, sender.committed(), 10);
    for (; receiver.ready(); receiver.release(), ++got) EXPECT_TRUE(holds_message(receiver, 1, got, 10));
    return got == 50 || testing::Test::HasFailure();
  }));
  EXPECT_TRUE(world.transport(0).peer_status(0).ok());
}

TEST_P(TransportConformance, GivesTheSameFlowWhenOpenedAgain) {
  make(2);
  EXPECT_EQ(&out(0, 1, flow(1)), &out(0, 1, flow(1)));
  EXPECT_EQ(&in(0, 1, flow(1)), &in(0, 1, flow(1)));
  constexpr RingShape kOther{.slots = 5, .slot_bytes = 256};
  EXPECT_EQ(world_->transport(0).open_out(1, flow(1), kOther).error().code, Code::invalid_argument);
  EXPECT_EQ(world_->transport(1).open_in(0, flow(1), kOther).error().code, Code::invalid_argument);
}

TEST_P(TransportConformance, RefusesShapesAndRanksThatCannotBe) {
  World& world = make(2);
  for (const RingShape shape : {RingShape{0, 64}, RingShape{1, 0}, RingShape{1, 65}, RingShape{kSlotsMax + 1, 64},
                                RingShape{1, kSlotBytesMax + 64}}) {
    EXPECT_EQ(world.transport(0).open_out(1, flow(1), shape).error().code, Code::invalid_argument);
    EXPECT_EQ(world.transport(0).open_in(1, flow(1), shape).error().code, Code::invalid_argument);
  }
  for (const Rank rank : {-1, 2}) {
    EXPECT_EQ(world.transport(0).open_out(rank, flow(1), kShape).error().code, Code::invalid_argument);
    EXPECT_EQ(world.transport(0).open_in(rank, flow(1), kShape).error().code, Code::invalid_argument);
  }
}

TEST_P(TransportConformance, NoticesHalvesOfDifferentShape) {
  World& world = make(2);
  out(0, 1, flow(1));
  in(0, 1, flow(1), {.slots = 8, .slot_bytes = 256});
  EXPECT_TRUE(world.until([&] {
    return world.transport(0).peer_status(1).code() == Code::refused ||
           world.transport(1).peer_status(0).code() == Code::refused;
  }));
}

TEST_P(TransportConformance, DropsWhatAClosedCommunicatorHeldAndKeepsOthers) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  OutFlow& other_sender = out(0, 1, flow(2));
  InFlow& other_receiver = in(0, 1, flow(2));
  commit_message(sender, 1, 0, 10);
  ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
  world.transport(1).close_flows(1);
  for (std::uint64_t i = 1; i < kShape.slots; ++i)
    commit_message(sender, 1, i, 256);  // late ones, to a receiver that is gone
  for (std::uint64_t i = 0; i < kShape.slots; ++i) commit_message(other_sender, 2, i, 256);
  ASSERT_TRUE(world.until([&] { return other_receiver.ready(kShape.slots - 1); }));
  world.transport(0).close_flows(1);
  world.settle();
  for (std::uint64_t i = 0; i < kShape.slots; ++i) EXPECT_TRUE(holds_message(other_receiver, 2, i, 256, i));
  other_receiver.release(kShape.slots);
  EXPECT_TRUE(world.until([&] { return other_sender.released() == kShape.slots; }));
  for (const Rank rank : {0, 1}) {
    EXPECT_TRUE(world.transport(rank).peer_status(1 - rank).ok());
    EXPECT_EQ(world.transport(rank).open_out(1 - rank, flow(1), kShape).error().code, Code::invalid_argument);
    EXPECT_EQ(world.transport(rank).open_in(1 - rank, flow(1), kShape).error().code, Code::invalid_argument);
  }
}

TEST_P(TransportConformance, ClosesInEveryOrderAgainAndAgain) {
  World& world = make(2);
  constexpr RingShape kLarge{.slots = 8, .slot_bytes = 1 << 20};  // 64 MiB of rings would not fit the arena eight times
  Rng rng(5);
  for (std::uint64_t communicator = 1; communicator <= 60; ++communicator) {
    for (const Rank rank : {0, 1}) {
      if (rng.chance(0.8)) commit_message(out(rank, 1 - rank, flow(communicator), kLarge), communicator, 0, 1000);
      if (rng.chance(0.8)) in(1 - rank, rank, flow(communicator), kLarge);
      if (rng.chance(0.5)) world.settle();
    }
    const Rank first = rng.chance(0.5) ? 0 : 1;
    world.transport(first).close_flows(communicator);
    if (rng.chance(0.5)) world.settle();
    world.transport(1 - first).close_flows(communicator);
    world.settle();
  }
  EXPECT_TRUE(world.transport(0).peer_status(1).ok()) << world.transport(0).peer_status(1).text();
  EXPECT_TRUE(world.transport(1).peer_status(0).ok()) << world.transport(1).peer_status(0).text();
}

TEST_P(TransportConformance, ReadsWindowsInPlace) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  if (!world.transport(0).capabilities(1).windows) {
    EXPECT_EQ(world.transport(0).allocate_window(64), nullptr);
    EXPECT_EQ(sender.window_offset(&world, 1), SlotHeader::kNoWindow);
    return;
  }
  constexpr std::size_t kBytes = 100'000;
  auto* const window = static_cast<std::byte*>(world.transport(0).allocate_window(kBytes));
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window) % 64, 0u);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(window[i], std::byte{0});
  for (std::size_t i = 0; i < kBytes; ++i) window[i] = byte_of(8, 0, i);
  const std::byte outside{};
  EXPECT_EQ(sender.window_offset(&outside, 1), SlotHeader::kNoWindow);
  const std::uint64_t offset = sender.window_offset(window + 100, 5000);
  ASSERT_NE(offset, SlotHeader::kNoWindow);
  sender.commit({.digest = 3, .bytes = 5000, .window_offset = offset});
  ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
  ASSERT_TRUE(receiver.header().described());
  const std::byte* const payload = receiver.payload(receiver.header());
  ASSERT_NE(payload, nullptr);
  for (std::size_t i = 0; i < 5000; ++i) ASSERT_EQ(payload[i], byte_of(8, 0, 100 + i));
  window[100] = std::byte{0x5a};  // in place, not copied
  EXPECT_EQ(payload[0], std::byte{0x5a});
  receiver.release();
  EXPECT_TRUE(world.until([&] { return sender.released() == 1; }));

  sender.commit({.digest = 3, .bytes = 64, .window_offset = std::uint64_t{1} << 62});  // as a broken peer would
  ASSERT_TRUE(world.until([&] { return receiver.ready(); }));
  EXPECT_EQ(receiver.payload(receiver.header()), nullptr);
  world.transport(0).free_window(window);
}

TEST_P(TransportConformance, GivesNoPayloadToAHeaderOfMoreThanASlot) {
  World& world = make(2);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  sender.commit({.digest = 3, .bytes = kShape.slot_bytes + 1});
  world.settle();
  if (receiver.ready())
    EXPECT_EQ(receiver.payload(receiver.header()), nullptr);
  else
    EXPECT_FALSE(world.transport(1).peer_status(0).ok() && world.transport(0).peer_status(1).ok());
}

TEST_P(TransportConformance, MovesRandomTrafficOfManyRanks) {
  constexpr int kRanks = 4;
  World& world = make(kRanks);
  struct Flow {
    OutFlow* out;
    InFlow* in;
    std::uint64_t got = 0;
    std::uint64_t messages = 0;
    RingShape shape;
  };
  Rng rng(77);
  std::vector<Flow> flows;
  for (int i = 0; i < 40; ++i) {
    const auto from = static_cast<Rank>(rng.below(kRanks));
    const auto to = static_cast<Rank>(rng.below(kRanks));
    const FlowId id = flow(1 + rng.below(3), static_cast<std::uint8_t>(rng.below(3)), static_cast<std::uint8_t>(i));
    const RingShape shape{.slots = static_cast<std::uint32_t>(1 + rng.below(8)),
                          .slot_bytes = static_cast<std::uint32_t>(64 * (1 + rng.below(300)))};
    flows.push_back({&out(from, to, id, shape), &in(from, to, id, shape), 0, rng.below(300), shape});
  }
  ASSERT_TRUE(world.until([&] {
    bool done = true;
    for (std::uint64_t i = 0; i < flows.size(); ++i) {
      Flow& each = flows[i];
      while (each.out->committed() < each.messages && each.out->room() > 0 && rng.chance(0.8))
        commit_message(*each.out, i, each.out->committed(), size_of(i, each.out->committed(), each.shape.slot_bytes));
      for (; each.in->ready() && rng.chance(0.7); each.in->release(), ++each.got)
        EXPECT_TRUE(holds_message(*each.in, i, each.got, size_of(i, each.got, each.shape.slot_bytes)));
      done = done && each.got == each.messages;
    }
    return done || testing::Test::HasFailure();
  }));
}

}  // namespace sluice::test
