// What transports in real time promise to ranks that sleep in threads; and the suite's own checks, on what they must
// catch.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/conformance.h"

namespace sluice::test {

using namespace std::chrono_literals;

class TransportWaiting : public OnTransport {
 public:
  // The waiter's protocol of transport.h. False: not within `patience`.
  static bool wait_until(Transport& transport, std::chrono::nanoseconds patience, const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (!done()) {
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= 0ns) return false;
      transport.prepare_wait();
      if (transport.progress() > 0 || done())
        transport.cancel_wait();
      else
        transport.wait(left);
    }
    return true;
  }
};
std::vector<WorldKind> kinds_in_real_time() {
  std::vector<WorldKind> kinds = world_kinds();
  std::erase_if(kinds, [](const WorldKind& kind) { return !kind.make(1)->real_time(); });
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(Transports, TransportWaiting, testing::ValuesIn(kinds_in_real_time()), name_of_kind);

TEST_P(TransportWaiting, WakesForAMessageAndForRoom) {
  World& world = make(2);
  std::thread other([&] {
    InFlow& receiver = in(0, 1, flow(1));
    OutFlow& back = out(1, 0, flow(1));
    for (std::uint64_t i = 0; i < 4; ++i) {
      std::this_thread::sleep_for(20ms);
      EXPECT_TRUE(wait_until(world.transport(1), 20s, [&] { return receiver.ready(); }));
      receiver.release();
      commit_message(back, 1, i, 10);
      world.transport(1).progress();
    }
    EXPECT_TRUE(wait_until(world.transport(1), 20s, [&] { return back.released() == back.committed(); }));
  });
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(1, 0, flow(1));
  for (std::uint64_t i = 0; i < 4; ++i) {
    commit_message(sender, 1, i, 10);
    EXPECT_TRUE(wait_until(world.transport(0), 20s, [&] { return receiver.ready(); }));
    EXPECT_TRUE(holds_message(receiver, 1, i, 10));
    receiver.release();
  }
  EXPECT_TRUE(wait_until(world.transport(0), 20s, [&] { return sender.released() == sender.committed(); }));
  wait_until(world.transport(0), 1s, [&] { return false; });  // serves its credits until the other has them
  other.join();
}

TEST_P(TransportWaiting, MissesNoMessageInManySleeps) {
  constexpr std::uint64_t kRounds = 3000;
  World& world = make(2);
  const auto ping = [&](Rank rank) {
    OutFlow& sender = out(rank, 1 - rank, flow(1));
    InFlow& receiver = in(1 - rank, rank, flow(1));
    for (std::uint64_t i = 0; i < kRounds; ++i) {
      if (rank == 0) commit_message(sender, 1, i, 16);
      if (!wait_until(world.transport(rank), 20s, [&] { return receiver.ready(); })) {
        ADD_FAILURE() << "rank " << rank << " slept through message " << i;
        return;
      }
      EXPECT_TRUE(holds_message(receiver, 1, i, 16));
      receiver.release();
      EXPECT_TRUE(wait_until(world.transport(rank), 20s, [&] { return sender.room() > 0; }));
      if (rank == 1) commit_message(sender, 1, i, 16);
    }
    world.transport(rank).progress();
  };
  const auto begin = std::chrono::steady_clock::now();
  std::thread other(ping, 1);
  ping(0);
  other.join();
  const auto each = (std::chrono::steady_clock::now() - begin) / (2 * kRounds);
  RecordProperty("nanoseconds_per_wake", std::to_string(std::chrono::nanoseconds(each).count()));
  EXPECT_LT(each, 5ms);
}

TEST_P(TransportWaiting, WakesWhenAnotherThreadSaysSo) {
  World& world = make(2);
  Transport& transport = world.transport(0);
  in(1, 0, flow(1));
  world.settle();
  std::atomic<int> asked{0};
  std::thread other([&] {
    for (int i = 0; i < 200; ++i) {
      while (asked.load() == i) std::this_thread::yield();
      transport.wake();
    }
  });
  int woken = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (; woken < 200 && std::chrono::steady_clock::now() - begin < 20s; ++woken) {
    asked.store(woken + 1);
    transport.prepare_wait();
    if (transport.progress() > 0)
      transport.cancel_wait();
    else
      transport.wait(20s);
  }
  EXPECT_EQ(woken, 200);
  asked.store(200);
  other.join();
}

TEST_P(TransportWaiting, ReturnsAtItsDeadline) {
  World& world = make(2);
  in(1, 0, flow(1));
  world.settle();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(wait_until(world.transport(0), 30ms, [] { return false; }));
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 30ms);
  EXPECT_LT(took, 5s);
}

TEST_P(TransportWaiting, WakesTogetherWithAnotherTransport) {
  World& world = make(2);
  const std::unique_ptr<World> idle = GetParam().make(1);
  OutFlow& sender = out(0, 1, flow(1));
  InFlow& receiver = in(0, 1, flow(1));
  world.settle();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    commit_message(sender, 1, 0, 10);
    world.transport(0).progress();
  });
  const auto begin = std::chrono::steady_clock::now();
  Transport* const both[] = {&world.transport(1), &idle->transport(0)};
  int sleeps = 0;
  while (!receiver.ready() && std::chrono::steady_clock::now() - begin < 20s) {
    for (Transport* each : both) each->prepare_wait();
    std::size_t moved = 0;
    for (Transport* each : both) moved += each->progress();
    if (moved == 0 && !receiver.ready()) {
      wait_any(both, 20s);
      ++sleeps;
    } else {
      for (Transport* each : both) each->cancel_wait();
    }
  }
  other.join();
  ASSERT_TRUE(receiver.ready());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_LE(sleeps, 10);  // it slept, it did not spin
}

TEST_P(TransportWaiting, TellsASleeperThatItsPeerIsGone) {
  World& world = make(2);
  in(1, 0, flow(1));
  in(0, 1, flow(1));
  world.settle();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    world.drop(1);
  });
  EXPECT_TRUE(wait_until(world.transport(0), 20s, [&] { return !world.transport(0).peer_status(1).ok(); }));
  other.join();
}

TEST(ConformanceBroken, SeesAnotherMessageSizeOrByte) {
  const auto world = make_loop_world(2);
  OutFlow& sender = **world->transport(0).open_out(1, flow(1), kShape);
  InFlow& receiver = **world->transport(1).open_in(0, flow(1), kShape);
  commit_message(sender, 1, 0, 100);
  ASSERT_TRUE(world->until([&] { return receiver.ready(); }));
  EXPECT_TRUE(holds_message(receiver, 1, 0, 100));
  EXPECT_FALSE(holds_message(receiver, 1, 1, 100)) << "another number";
  EXPECT_FALSE(holds_message(receiver, 2, 0, 100)) << "another flow";
  EXPECT_FALSE(holds_message(receiver, 1, 0, 99)) << "another size";
  receiver.ring().place(0, 100)[99] ^= std::byte{1};
  EXPECT_FALSE(holds_message(receiver, 1, 0, 100)) << "one bit";
}

TEST(ConformanceBroken, SeesASleeperThatNobodyWakes) {
  const auto world = make_shm_world(2);
  OutFlow& sender = **world->transport(0).open_out(1, flow(1), kShape);
  InFlow& receiver = **world->transport(1).open_in(0, flow(1), kShape);
  world->settle();
  sender.bind(sender.ring(), {}, nullptr, 0);  // a bell that does not ring
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    commit_message(sender, 1, 0, 10);
  });
  const auto begin = std::chrono::steady_clock::now();
  TransportWaiting::wait_until(world->transport(1), 400ms, [&] { return receiver.ready(); });
  EXPECT_GE(std::chrono::steady_clock::now() - begin, 390ms);
  other.join();
}

}  // namespace sluice::test
