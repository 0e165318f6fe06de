// A rank that waits long burns no core.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "comm/lanes/cores.h"
#include "tests/comm/executor/rank_threads.h"
#include "tests/support/sanitized.h"

namespace sluice::test {
namespace {

using std::chrono::milliseconds;

constexpr double kMost = kSanitized ? 0.25 : 0.05;  // of a core

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

class Waiting : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Transports, Waiting, testing::Values("shm", "tcp"),
                         [](const auto& tested) { return tested.param; });

// For a second, in which others wait or soon will. All ranks are threads of this process, so its time is theirs.
std::string measure() {
  std::this_thread::sleep_for(milliseconds(40));
  const auto begin = std::chrono::steady_clock::now();
  const double before = cpu_seconds();
  std::this_thread::sleep_for(milliseconds(1000));
  const double used = cpu_seconds() - before;
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  printf("    %.2f%% of a core\n", used / passed * 100);
  return used / passed < kMost ? "" : "they used " + std::to_string(used) + " s in " + std::to_string(passed) + " s; ";
}

TEST_P(Waiting, EightRanksUseLessThanATwentiethOfACoreAfterTenMilliseconds) {
  const std::string wrong = run_ranks({8, GetParam(), {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    if (const Status met = world.barrier().wait(); !met.ok()) return met.text();
    const std::string said = world.rank() == 0 ? measure() : "";
    const Status met = world.barrier().wait();
    return said + (met.ok() ? "" : met.text());
  });
  EXPECT_EQ(wrong, "");
}

// Where ranks share cores, whoever waits for the bulk one stands back.
TEST_P(Waiting, SoDoTheyWithTwoThreadsEachThatWaitForTwoLanes) {
  const int ranks = std::max(4, static_cast<int>(allowed_cores().size()) + 1);
  const std::string wrong = run_ranks({ranks, GetParam(), {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    auto urgent = world.split(0, 0, {.lane = {.name = "tp", .priority = Priority::urgent}, .name = {}, .deadline = {}});
    auto bulk = world.split(0, 0, {.lane = {.name = "dp", .priority = Priority::bulk}, .name = {}, .deadline = {}});
    if (!urgent.ok() || !bulk.ok()) return urgent.status().text() + bulk.status().text();
    std::string said = world.rank() == 0 ? measure() : "";
    Status beside;
    std::thread other([&] { beside = bulk->barrier().wait(); });
    const Status met = urgent->barrier().wait();
    other.join();
    return said + met.text() + beside.text();
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sluice::test
