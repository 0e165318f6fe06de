// Communicators of one rank keep out of each other's way: threads, numbers, what only the root says.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "comm/executor/communicator_state.h"
#include "tests/comm/executor/rank_threads.h"

namespace sluice::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

SplitOptions soon_given_up() {
  SplitOptions options;
  options.deadline = seconds(10);
  return options;
}

Status send_one(Communicator& communicator, Rank to) {
  const float value = 1;
  return communicator.send(&value, 1, DataType::float32, to).wait();
}
Status receive_one(Communicator& communicator, Rank from) {
  float value = 0;
  return communicator.receive(&value, 1, DataType::float32, from).wait();
}

// The first message of the second communicator needs a new flow while another thread waits, and that wait ends only after it.
TEST(Communicators, AWaitingThreadMakesWayForOneThatOpensAFlow) {
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    Communicator first = *world.split(0, 0, soon_given_up());
    Communicator second = *world.split(0, 0, soon_given_up());
    if (world.rank() == 1) {
      if (const Status got = receive_one(second, 0); !got.ok()) return got.text();
      return send_one(first, 0).text();
    }
    Status got;
    std::thread waiter([&] { got = receive_one(first, 1); });
    std::this_thread::sleep_for(milliseconds(50));
    const Status sent = send_one(second, 1);
    waiter.join();
    return sent.text() + got.text();
  });
  EXPECT_EQ(wrong, "");
}

// A peer that has not heard of an error may still write a result to it.
TEST(Communicators, AFreedWindowIsNotGivenOutAgainSoonAfterAnError) {
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    Communicator other = *world.split(0, 0);
    const auto place_of_next = [&]() { return other.allocate(1 << 20)->data(); };
    const void* const before = place_of_next();
    if (place_of_next() != before) return "without an error a freed window is given out again";
    if (const Status met = world.barrier().wait(); !met.ok())
      return met.text();  // else one hears of the other's too soon
    other.abort("of the test");
    const void* const freed = world.allocate(1 << 20)->data();
    return freed == before && world.allocate(1 << 20)->data() != freed ? "" : "it was given out again";
  });
  EXPECT_EQ(wrong, "");
}

// What came of an operation on a communicator that rank 0 gives up in the middle of it; empty: the other heard of it. `given_up`
// counts the calls in which rank 0 has done so.
std::string give_up(Communicator world, int call, std::atomic<int>& given_up) {
  Communicator other = *world.split(0, 0, soon_given_up());
  const float one = 1;
  float sum = 0;
  while (world.rank() == 1 && given_up < call) std::this_thread::sleep_for(std::chrono::microseconds(20));
  Work work = other.all_reduce({&one, &sum, 1, DataType::float32}, ReduceOp::sum);
  if (world.rank() == 0) {
    other = Communicator();
    ++given_up;
  } else if (work.wait().ok()) {  // what rank 0 sent was enough for it
    work = other.all_reduce({&one, &sum, 1, DataType::float32}, ReduceOp::sum);
  }
  const Status ended = work.wait();
  if (const Status met = world.barrier().wait(); !met.ok()) return met.text();
  return ended.code() == Code::aborted ? "" : "it ended with: " + ended.text();
}

// They would use this rank's windows for an operation that it has given up. They may hear of it before they know the communicator.
TEST(Communicators, TheOthersHearOfOneThatEndsWithAnOperationUnfinished) {
  std::atomic<int> given_up{0};
  const std::string wrong = run_ranks({2, "shm", {{Setting::log, "off"}}}, [&](Runtime& runtime) -> std::string {
    for (int call = 1; call <= 100; ++call)
      if (const std::string text = give_up(runtime.world(), call, given_up); !text.empty()) return text;
    return "";
  });
  EXPECT_EQ(wrong, "");
}

TEST(Communicators, AnyColorsOfAnySplitsGiveDifferentNumbers) {
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    const Communicator high = *world.split(1 << 16, 0);
    const Communicator low = *world.split(0, 0);
    return high.state()->identity().id != low.state()->identity().id ? "" : "they share their flows";
  });
  EXPECT_EQ(wrong, "");
}

TEST(Communicators, WhatWasShrunkIsNotShrunkAgain) {
  const std::string wrong = run_ranks({2, "shm", {{Setting::log, "off"}}}, [&](Runtime& runtime) -> std::string {
    Communicator part = *runtime.world().split(0, 0);
    const auto once = part.shrink();
    if (!once.ok()) return once.error().text;
    const auto twice = part.shrink();
    return !twice.ok() && twice.error().code == Code::invalid_argument ? "" : "shrunk twice";
  });
  EXPECT_EQ(wrong, "");
}

TEST(Communicators, OnlyTheRootsBlocksAreLookedAt) {
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    const std::array<float, 3> in{1, 2, 3};
    std::array<float, 2> out{};
    const bool root = world.rank() == 0;
    // The root's counts are 1 and 2; the table of the other rank is nonsense, which it may be.
    const std::array<std::size_t, 2> counts{root ? 1 : ~std::size_t{0}, 2};
    const InOut buffers{root ? in.data() : nullptr, out.data(), root ? std::size_t{1} : std::size_t{2},
                        DataType::float32};
    if (const Status done = world.scatter_v(buffers, {counts, {}}, 0).wait(); !done.ok()) return done.text();
    return out[0] == (root ? 1.0F : 2.0F) && out[1] == (root ? 0.0F : 3.0F) ? "" : "wrong values";
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sluice::test
