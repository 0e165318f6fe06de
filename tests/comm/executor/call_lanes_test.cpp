// Calls that name a lane: beside the communicator's own operations, and with its fate.
#include <gtest/gtest.h>

#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"
#include "tests/comm/executor/loop_fixture.h"
#include "tests/comm/executor/rank_threads.h"

namespace sluice::test {
namespace {

const Lane kUrgent{.name = "tp", .priority = Priority::urgent};

CallOptions on(const Lane& lane) {
  CallOptions options;
  options.lane = lane;
  return options;
}

struct Buffers {
  explicit Buffers(std::size_t count, float value) : in(count, value), out(count, -1) {}
  InOut all() { return {in.data(), out.data(), in.size()}; }
  std::vector<float> in, out;
};

TEST(CallLanes, AnUrgentCallOvertakesTheCommunicatorsOwnOperations) {
  LoopJob job(3);
  std::vector<Buffers> large(3, Buffers(200'000, 1)), small(3, Buffers(500, 2));
  std::vector<Work> large_works, small_works;
  for (std::size_t i = 0; i < 3; ++i) large_works.push_back(job.worlds[i].all_reduce(large[i].all(), ReduceOp::sum));
  for (int i = 0; i < 50; ++i) job.made.group->step();
  for (std::size_t i = 0; i < 3; ++i)
    small_works.push_back(job.worlds[i].all_reduce(small[i].all(), ReduceOp::sum, on(kUrgent)));
  for (Work& work : small_works) ASSERT_TRUE(work.wait().ok());
  for (Work& work : large_works) EXPECT_FALSE(work.test()) << "the operation before it ended first";
  for (Work& work : large_works) ASSERT_TRUE(work.wait().ok());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(large[i].out, std::vector<float>(200'000, 3));
    EXPECT_EQ(small[i].out, std::vector<float>(500, 6));
  }
  std::vector<std::string> lanes;
  for (const LaneCounters& one : job.made.runtimes[0]->lane_counters()) lanes.push_back(one.lane);
  EXPECT_EQ(lanes, (std::vector<std::string>{"default", "tp"}));
}

TEST(CallLanes, OfTheCommunicatorItselfAreNoOther) {
  LoopJob job(1);
  detail::CommunicatorState& world = *job.worlds[0].state();
  EXPECT_EQ(*world.of_lane({.name = "default"}), &world);
  detail::CommunicatorState* const tp = *world.of_lane(kUrgent);
  EXPECT_NE(tp, &world);
  EXPECT_EQ(*world.of_lane(kUrgent), tp);
  EXPECT_EQ(*world.of_lane({.name = "tp", .priority = Priority::urgent, .weight = 1}), tp) << "said in another way";
  EXPECT_EQ(*world.of_lane({.name = "tp", .priority = Priority::urgent, .bytes_per_second_max = 1 << 20}), tp)
      << "the first call's bounds count";
  EXPECT_EQ(*world.of_lane({.name = "default", .bytes_per_second_max = 1 << 20}), &world);
  EXPECT_NE(*world.of_lane({.name = "tp", .priority = Priority::bulk}), tp);
}

TEST(CallLanes, ThatCannotBeAreRefusedAndHurtNobody) {
  LoopJob job(1);
  Buffers buffers(8, 1);
  const Status refused = job.worlds[0].all_reduce(buffers.all(), ReduceOp::sum, on({.name = "tp", .weight = 0})).wait();
  EXPECT_EQ(refused.code(), Code::invalid_argument);
  EXPECT_NE(refused.text().find("rank 0: lane 'tp': weight is '0'"), std::string::npos) << refused.text();
  EXPECT_TRUE(job.worlds[0].all_reduce(buffers.all(), ReduceOp::sum).wait().ok());
}

// Rank 1 posts another count on the lane: both find out, and no other call of the communicator goes on.
TEST(CallLanes, ShareTheFateOfTheirCommunicator) {
  LoopJob job(2, {}, "2s");
  std::vector<Buffers> buffers{Buffers(64, 1), Buffers(65, 1)};
  std::vector<Work> works;
  for (std::size_t i = 0; i < 2; ++i)
    works.push_back(job.worlds[i].all_reduce(buffers[i].all(), ReduceOp::sum, on(kUrgent)));
  for (Work& work : works) EXPECT_EQ(work.wait().code(), Code::mismatch);
  for (Communicator& world : job.worlds) {
    EXPECT_EQ(world.status().code(), Code::mismatch);
    EXPECT_EQ(world.barrier().wait().code(), Code::mismatch);
    EXPECT_EQ(world.barrier(on({.name = "other"})).wait().code(), Code::mismatch);
  }
}

TEST(CallLanes, AreAbortedWithTheirCommunicator) {
  LoopJob job(2);
  Buffers buffers(64, 1);
  Work work = job.worlds[0].all_reduce(buffers.all(), ReduceOp::sum, on(kUrgent));
  job.worlds[1].abort("enough");
  const Status ended = work.wait();
  EXPECT_EQ(ended.code(), Code::aborted);
  EXPECT_NE(ended.text().find("enough"), std::string::npos) << ended.text();
}

// Nobody waits for the operation on the lane before the communicator goes.
TEST(CallLanes, EndWithTheirCommunicator) {
  LoopJob job(2);
  Buffers buffers(64, 1);
  Work work;
  {
    Communicator part = [&] {
      detail::Identity identity;
      identity.id = 77;
      identity.name = "part";
      identity.members = {0, 1};
      identity.deadline = std::chrono::minutes(1);
      return job.made.runtimes[0]->state()->make_communicator(identity);
    }();
    work = part.all_reduce(buffers.all(), ReduceOp::sum, on(kUrgent));
  }
  EXPECT_TRUE(work.test());
  EXPECT_EQ(work.wait().code(), Code::aborted);
}

std::string messages_and_close(Runtime& runtime) {
  Communicator world = runtime.world();
  const Rank other = 1 - world.rank();
  std::vector<int> sent(5000, world.rank()), got(5000, -1);
  for (int round = 0; round < 20; ++round) {
    Group group;
    group.add(world.send(sent.data(), sent.size(), DataType::int32, other, on(kUrgent)));
    group.add(world.receive(got.data(), got.size(), DataType::int32, other, on(kUrgent)));
    Buffers buffers(10'000, 1);
    group.add(world.all_reduce(buffers.all(), ReduceOp::sum));
    if (const Status done = group.wait(); !done.ok()) return done.text();
    if (got != std::vector<int>(5000, other) || buffers.out != std::vector<float>(10'000, 2)) return "wrong data";
  }
  // Posted and not waited for: close() sees to it.
  Buffers late(30'000, 1);
  Work work = world.all_reduce(late.all(), ReduceOp::sum, on(kUrgent));
  if (const Status closed = world.close(); !closed.ok()) return closed.text();
  if (!work.test() || late.out != std::vector<float>(30'000, 2)) return "close() left an operation behind";
  const Status after = world.all_reduce(late.all(), ReduceOp::sum, on(kUrgent)).wait();
  return after.code() == Code::invalid_argument ? "" : "a closed communicator took a call: " + after.text();
}

// A lane that carried messages alone is closed too.
TEST(CallLanes, OfMessagesAloneAreClosedWithTheirCommunicator) {
  const std::string wrong = run_ranks({2, "shm", {}}, [](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    int value = world.rank();
    const Status done = world.rank() == 0 ? world.send(&value, 1, DataType::int32, 1, on(kUrgent)).wait()
                                          : world.receive(&value, 1, DataType::int32, 0, on(kUrgent)).wait();
    if (!done.ok()) return done.text();
    if (const Status closed = world.close(); !closed.ok()) return closed.text();
    const Status after = world.receive(&value, 1, DataType::int32, 1 - world.rank(), on(kUrgent)).wait();
    return after.code() == Code::invalid_argument ? "" : "a closed communicator took a call: " + after.text();
  });
  EXPECT_EQ(wrong, "");
}

TEST(CallLanes, CarryMessagesAndAreClosedWithTheirCommunicator) {
  for (const char* transport : {"shm", "tcp"}) EXPECT_EQ(run_ranks({2, transport, {}}, messages_and_close), "");
}

// The ranks name different lanes: nobody hangs, and the error says where it waited.
TEST(CallLanes, ThatDifferAreATimeoutThatNamesTheLane) {
  LoopJob job(2, {}, "1s");
  std::vector<Buffers> buffers(2, Buffers(64, 1));
  std::vector<Work> works;
  for (std::size_t i = 0; i < 2; ++i)
    works.push_back(job.worlds[i].all_reduce(buffers[i].all(), ReduceOp::sum,
                                             on({.name = "tp", .weight = static_cast<std::uint32_t>(1 + i)})));
  for (Work& work : works) {
    const Status ended = work.wait();
    EXPECT_EQ(ended.code(), Code::timeout);
    EXPECT_NE(ended.text().find("(lane tp)"), std::string::npos) << ended.text();
    EXPECT_NE(ended.text().find("not seen inside it: rank"), std::string::npos) << ended.text();
  }
}

}  // namespace
}  // namespace sluice::test
