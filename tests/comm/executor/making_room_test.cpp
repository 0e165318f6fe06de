// Ranks that share cores: what is less urgent makes room for what another rank shows, but not for long where that does not go on.
#include <gtest/gtest.h>

#include <atomic>

#include "comm/executor/runtime_state.h"
#include "comm/lanes/cores.h"
#include "tests/comm/executor/rank_threads.h"

namespace sluice::test {
namespace {

constexpr std::uint8_t kUrgent = 1;
constexpr std::size_t kCount = 1 << 19;  // 2 MiB: more than what is guaranteed in the time of this test

enum class Shown : std::uint8_t { nothing, stuck, going_on };

// Rank 1 has a bulk operation of its own, and this thread alone drives it while rank 0 shows what the test wants. Ended: in so many passes.
bool ends_beside(Runtime& runtime, Communicator& bulk, Transport& other, Shown shown, int passes) {
  detail::Engine& engine = runtime.state()->engine();
  std::vector<float> in(kCount, 1), out(kCount);
  bool ended = false;
  Work work;
  engine.with_token([&] {
    other.show_urgency(shown == Shown::nothing ? ShownUrgency{} : ShownUrgency{.any = kUrgent});
    work = bulk.all_reduce({in.data(), out.data(), kCount}, ReduceOp::sum);
    for (int i = 0; i < passes && !ended; ++i) {
      if (shown == Shown::going_on) other.show_urgency({}), other.show_urgency({.any = kUrgent});
      engine.pass();
      ended = work.test();
      std::this_thread::sleep_for(std::chrono::microseconds(5));
    }
    other.show_urgency({});
  });
  return work.wait().ok() && ended;
}

TEST(MakingRoom, IsForUrgencyThatGoesOn) {
  std::atomic<Transport*> first{nullptr};
  const int ranks = static_cast<int>(allowed_cores().size()) + 1;
  const std::string wrong = run_ranks({ranks, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    auto bulk =
        world.split(world.rank(), 0, {.lane = {.name = "dp", .priority = Priority::bulk}, .name = {}, .deadline = {}});
    if (!bulk.ok()) return bulk.status().text();
    if (world.rank() == 0) first = *runtime.state()->transport_to(1);
    if (const Status met = world.barrier().wait(); !met.ok()) return met.text();
    std::string said;
    if (world.rank() == 1) {
      if (!runtime.state()->engine().crowded()) said += "more ranks than cores are not crowded; ";
      if (!ends_beside(runtime, *bulk, *first, Shown::nothing, 200)) said += "it did not end beside nothing; ";
      if (ends_beside(runtime, *bulk, *first, Shown::going_on, 200)) said += "it made no room; ";
      if (!ends_beside(runtime, *bulk, *first, Shown::stuck, 2000)) said += "it made room for what did not go on; ";
    }
    if (const Status met = world.barrier().wait(); !met.ok()) return met.text();
    return said;
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sluice::test
