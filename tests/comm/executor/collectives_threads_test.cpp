// The same cases over shared memory and TCP, with threads as ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "comm/algorithms/algorithms.h"
#include "tests/comm/executor/rank_threads.h"
#include "tests/support/collective_case.h"

namespace sluice {
namespace {

using test::CaseRun;
using test::CollectiveCase;
using test::run_ranks;

constexpr OperationKind kKinds[] = {
    OperationKind::all_reduce,   OperationKind::reduce_scatter,   OperationKind::all_gather,
    OperationKind::broadcast,    OperationKind::reduce,           OperationKind::gather,
    OperationKind::scatter,      OperationKind::all_to_all,       OperationKind::all_gather_v,
    OperationKind::gather_v,     OperationKind::reduce_scatter_v, OperationKind::scatter_v,
    OperationKind::all_to_all_v, OperationKind::barrier};

// Every kind at sizes around the borders of slots and slices.
std::vector<CollectiveCase> cases_of(int ranks) {
  std::vector<CollectiveCase> cases;
  for (const OperationKind kind : kKinds)
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1003}, std::size_t{70'001}})
      for (const bool in_place : {false, true}) {
        if (in_place && (kind == OperationKind::all_to_all_v || kind == OperationKind::barrier)) continue;
        CollectiveCase one;
        one.kind = kind;
        one.ranks = ranks;
        one.count = count;
        one.in_place = in_place;
        one.root = static_cast<Rank>(cases.size()) % ranks;
        one.misaligned = cases.size() % 3;
        one.order = cases.size() % 2 == 0 ? Order::fast : Order::canonical;
        one.seed = cases.size() + 1;
        cases.push_back(one);
      }
  return cases;
}

struct Way {
  std::string transport;
  int ranks;
};
class CollectivesOverThreads : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, CollectivesOverThreads,
                         testing::Values(Way{"shm", 2}, Way{"shm", 3}, Way{"shm", 4}, Way{"shm", 7}, Way{"tcp", 2},
                                         Way{"tcp", 3}, Way{"tcp", 4}),
                         [](const auto& tested) {
                           return tested.param.transport + std::to_string(tested.param.ranks);
                         });

TEST_P(CollectivesOverThreads, GiveTheReferencesBits) {
  const auto [transport, ranks] = GetParam();
  const std::vector<CollectiveCase> cases = cases_of(ranks);
  std::vector<std::unique_ptr<CaseRun>> runs;
  runs.reserve(cases.size());
  for (const CollectiveCase& one : cases) runs.push_back(std::make_unique<CaseRun>(one));
  const std::string wrong = run_ranks({ranks, transport, {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (const Status done = runs[i]->post(world).wait(); !done.ok())
        return test::describe(cases[i]) + ": " + done.text();
    const Status closed = world.close();
    return closed.ok() ? "" : closed.text();
  });
  ASSERT_EQ(wrong, "");
  for (const auto& run : runs) ASSERT_EQ(run->check(), "");
}

TEST_P(CollectivesOverThreads, SendsAndReceivesMatchInOrder) {
  const auto [transport, ranks] = GetParam();
  const std::string wrong = run_ranks({ranks, transport, {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    constexpr std::size_t kSizes[] = {0, 1, 100, 40'000, 300'000};
    std::vector<std::vector<int>> sent, got;
    Group group;
    for (Rank peer = 0; peer < world.ranks(); ++peer)
      for (const std::size_t size : kSizes) {
        sent.emplace_back(size, world.rank() * 1000 + peer);
        got.emplace_back(size, -1);
        group.add(world.send(sent.back().data(), size, DataType::int32, peer));
        group.add(world.receive(got.back().data(), size, DataType::int32, peer));
      }
    if (const Status done = group.wait(); !done.ok()) return done.text();
    std::size_t at = 0;
    for (Rank peer = 0; peer < world.ranks(); ++peer)
      for (const std::size_t size : kSizes)
        if (got[at++] != std::vector<int>(size, peer * 1000 + world.rank()))
          return "wrong data from rank " + std::to_string(peer);
    const Status closed = world.close();
    return closed.ok() ? "" : closed.text();
  });
  EXPECT_EQ(wrong, "");
}

// One that was sent from a window waited for its reader; the next use of the same operation has another flow. What is long is stored past
// the caches.
TEST_P(CollectivesOverThreads, WindowsAreSentFromWhereTheyLie) {
  const auto [transport, ranks] = GetParam();
  const std::string wrong =
      run_ranks({ranks, transport, {{Setting::stream_bytes, "64K"}}}, [&](Runtime& runtime) -> std::string {
        Communicator world = runtime.world();
        constexpr std::size_t kLong = 40'000, kShort = 3;
        const WindowBuffer window = *world.allocate(kLong * sizeof(int));
        int* const values = static_cast<int*>(window.data());
        std::fill(values, values + kLong, world.rank());
        const std::vector<int> few(kShort, world.rank());
        std::vector<int> got(kLong);
        for (Rank peer = 0; peer < world.ranks(); ++peer)
          for (const std::size_t count : {kLong, kShort}) {
            Group group;
            group.add(world.send(count == kLong ? values : few.data(), count, DataType::int32, peer));
            group.add(world.receive(got.data(), count, DataType::int32, peer));
            if (const Status done = group.wait(); !done.ok()) return done.text();
            if (std::count(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(count), peer) !=
                static_cast<std::ptrdiff_t>(count))
              return "wrong data from rank " + std::to_string(peer);
          }
        const Status closed = world.close();
        return closed.ok() ? "" : closed.text();
      });
  EXPECT_EQ(wrong, "");
}

TEST_P(CollectivesOverThreads, SplitByColorAndKeyGivesIndependentCommunicators) {
  const auto [transport, ranks] = GetParam();
  const std::string wrong = run_ranks({ranks, transport, {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    const int color = world.rank() == 0 ? kNoColor : world.rank() % 2;
    SplitOptions options;
    options.lane = {"half", Priority::urgent};
    auto half = world.split(color, -world.rank(), options);
    if (!half.ok()) return half.error().text;
    if (world.rank() == 0) return half->valid() ? "rank 0 is in a group" : world.close().text();
    std::int64_t sum = world.rank();
    if (const Status done = half->all_reduce({&sum, &sum, 1, DataType::int64}, ReduceOp::sum).wait(); !done.ok())
      return done.text();
    std::int64_t want = 0;
    int members = 0;
    for (Rank rank = 1; rank < world.ranks(); ++rank)
      if (rank % 2 == color) want += rank, ++members;
    if (half->ranks() != members || sum != want) return "sum is " + std::to_string(sum);
    if (half->rank() != 0 && half->world_rank(half->rank() - 1) < world.rank()) return "keys do not order the ranks";
    return world.close().text();
  });
  EXPECT_EQ(wrong, "");
}

// What the sender leaves behind must arrive although it never calls anything again.
TEST_P(CollectivesOverThreads, ADestroyedCommunicatorStillDeliversWhatWasSent) {
  const auto [transport, ranks] = GetParam();
  const std::string wrong = run_ranks({ranks, transport, {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    std::vector<std::int32_t> data(100'000, world.rank() == 0 ? 7 : 0);
    {
      auto part = world.split(0, 0);
      if (!part.ok()) return part.error().text;
      if (world.rank() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (const Status done = part->broadcast({data.data(), data.data(), data.size(), DataType::int32}, 0).wait();
          !done.ok())
        return done.text();
    }
    if (data.back() != 7) return "the last element is " + std::to_string(data.back());
    return world.close().text();
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sluice
