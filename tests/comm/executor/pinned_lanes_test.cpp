// Lanes that are pinned to cores: served there and by nobody else.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <filesystem>
#include <fstream>

#include "comm/executor/runtime_state.h"
#include "comm/lanes/cores.h"
#include "tests/comm/executor/rank_threads.h"

namespace sluice::test {
namespace {

constexpr std::size_t kCount = 4'000'000;

struct Sum {
  std::vector<float> in = std::vector<float>(kCount, 1), out = std::vector<float>(kCount, -1);
  Work post(Communicator& on) { return on.all_reduce({in.data(), out.data(), kCount}, ReduceOp::sum); }
  bool right(int ranks) const { return out == std::vector<float>(kCount, static_cast<float>(ranks)); }
};

double seconds_of_this_thread() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

struct Times {
  double cpu = 0;  // of the thread that waits
  double wall = 0;
};

Result<Times> time_of(Communicator& on, int runs) {
  Sum sum;
  SLUICE_TRY(sum.post(on).wait());  // pages and flows
  const double cpu = seconds_of_this_thread();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < runs; ++i) SLUICE_TRY(sum.post(on).wait());
  const Times used{seconds_of_this_thread() - cpu,
                   std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  if (!sum.right(on.ranks())) return Error{Code::system, "a wrong sum"};
  return used;
}

Lane pinned_to(int core) { return {.name = "dp", .priority = Priority::bulk, .cores = Cores{core}}; }

// Who waits sleeps, while the same work on a lane that is not pinned is done by who waits.
TEST(PinnedLanes, AreNotServedByWhoWaits) {
  const int core = allowed_cores().back();
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    auto pinned = world.split(0, 0, {.lane = pinned_to(core), .name = {}, .deadline = {}});
    if (!pinned.ok()) return pinned.status().text();
    const auto there = time_of(*pinned, 5), here = time_of(world, 5);
    if (!there.ok() || !here.ok()) return there.status().text() + here.status().text();
    if (there->cpu > 0.2 * there->wall)
      return "who waited for the pinned lane worked " + std::to_string(there->cpu) + " s";
    if (here->cpu < 0.2 * here->wall) return "who waited for the other lane worked " + std::to_string(here->cpu) + " s";
    return {};
  });
  EXPECT_EQ(wrong, "");
}

// A thread that drives its own operations all the time leaves the pinned lane's alone, and makes way for them.
TEST(PinnedLanes, GoOnBesideAThreadThatDrivesAllTheTime) {
  const int core = allowed_cores().front();
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    auto pinned = world.split(0, 0, {.lane = pinned_to(core), .name = {}, .deadline = {}});
    if (!pinned.ok()) return pinned.status().text();
    Sum beside, own;
    Work work = beside.post(*pinned);
    for (int round = 0; round < 2000; ++round) {
      if (const Status done = own.post(world).wait(); !done.ok()) return done.text();
      std::uint8_t ended = work.test() ? 1 : 0;  // all must leave in the same round
      if (const Status met = world.all_reduce({&ended, &ended, 1, DataType::uint8}, ReduceOp::min).wait(); !met.ok())
        return met.text();
      if (ended == 1) return beside.right(2) && own.right(2) ? "" : "a wrong sum";
    }
    return "the pinned operation did not end beside 2,000 others";
  });
  EXPECT_EQ(wrong, "");
}

// While this thread has the token, nobody else moves anything: what ends meanwhile was served here.
bool is_served_here(Runtime& runtime, Communicator& on) {
  detail::Engine& engine = runtime.state()->engine();
  std::vector<float> in(1000, 1), out(1000);
  bool here = false;
  Work work;
  engine.with_token([&] {
    work = on.all_reduce({in.data(), out.data(), in.size()}, ReduceOp::sum);
    for (int i = 0; i < 100; ++i) engine.pass();
    here = work.test();
  });
  return work.wait().ok() && here;
}

TEST(PinnedLanes, AreNotServedByWhoDrives) {
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    const int own = world.rank();  // a communicator of this rank alone
    auto plain = world.split(own, 0);
    auto pinned = world.split(own, 0, {.lane = pinned_to(allowed_cores().front()), .name = {}, .deadline = {}});
    if (!plain.ok() || !pinned.ok()) return plain.status().text() + pinned.status().text();
    if (!is_served_here(runtime, *plain)) return "who has the token served nothing at all";
    return is_served_here(runtime, *pinned) ? "a thread that is not the engine's served a pinned lane" : "";
  });
  EXPECT_EQ(wrong, "");
}

// A job of one rank has no engine's thread.
TEST(PinnedLanes, EndWhereOneRankIsAlone) {
  const std::string wrong = run_ranks({1, "shm", {}}, [&](Runtime& runtime) -> std::string {
    auto pinned = runtime.world().split(0, 0, {.lane = pinned_to(allowed_cores().front()), .name = {}, .deadline = {}});
    if (!pinned.ok()) return pinned.status().text();
    Sum sum;
    const Status done = sum.post(*pinned).wait();
    return done.ok() && sum.right(1) ? "" : "a wrong sum; " + done.text();
  });
  EXPECT_EQ(wrong, "");
}

TEST(PinnedLanes, OnCoresThatAreNotOursAreRefused) {
  const std::string wrong = run_ranks({1, "shm", {}}, [&](Runtime& runtime) -> std::string {
    const auto split = runtime.world().split(0, 0, {.lane = pinned_to(kCoreMax), .name = {}, .deadline = {}});
    if (split.ok()) return "a core that is not there was taken";
    return split.error().text.find("lane 'dp': cores is '1023'") == std::string::npos ? split.error().text : "";
  });
  EXPECT_EQ(wrong, "");
}

// Threads of this process that may run on these cores alone.
int threads_on(const Cores& cores) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);)
      if (line == "Cpus_allowed_list:\t" + to_text(cores)) ++count;
  }
  return count;
}

// The engine's, on the cores of all lanes together.
TEST(PinnedLanes, PinTheThreadToTheCoresOfAllOfThem) {
  const Cores allowed = allowed_cores();
  if (allowed.size() < 2) GTEST_SKIP() << "one core is all that there is";
  const std::string wrong = run_ranks({2, "shm", {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    const auto seen = [&](int core) -> int {
      auto pinned = world.split(0, 0, {.lane = pinned_to(core), .name = {}, .deadline = {}});
      if (!pinned.ok() || !world.barrier().wait().ok()) return -1;
      const int count = threads_on({allowed[0]});
      return world.barrier().wait().ok() ? count : -1;
    };
    if (const int count = seen(allowed[0]); count != 2)
      return std::to_string(count) + " threads on the first core, not 2";
    if (const int count = seen(allowed[1]); count != 0)
      return std::to_string(count) + " threads on the first core alone";
    return {};
  });
  EXPECT_EQ(wrong, "");
}

TEST(PinnedLanes, AThreadIsPinnedWhereItIsTold) {
  const Cores allowed = allowed_cores();
  std::thread thread([] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); });
  ASSERT_TRUE(pin(thread, {allowed.front()}).ok());
  cpu_set_t set;
  ASSERT_EQ(pthread_getaffinity_np(thread.native_handle(), sizeof set, &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(allowed.front()), &set));
  EXPECT_EQ(pin(thread, {kCoreMax}).code(), Code::system);
  thread.join();
}

}  // namespace
}  // namespace sluice::test
