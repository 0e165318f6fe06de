// A rank that waits long burns no core.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <thread>

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

// All ranks are threads of this process, so its time is theirs.
TEST_P(Waiting, EightRanksUseLessThanATwentiethOfACoreAfterTenMilliseconds) {
  const std::string wrong = run_ranks({8, GetParam(), {}}, [&](Runtime& runtime) -> std::string {
    Communicator world = runtime.world();
    if (const Status met = world.barrier().wait(); !met.ok()) return met.text();
    double used = 0;
    double passed = 1;
    if (world.rank() == 0) {  // the others are in the next barrier, or soon will be
      std::this_thread::sleep_for(milliseconds(20));
      const auto begin = std::chrono::steady_clock::now();
      const double before = cpu_seconds();
      std::this_thread::sleep_for(milliseconds(1000));
      used = cpu_seconds() - before;
      passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    if (const Status met = world.barrier().wait(); !met.ok()) return met.text();
    if (world.rank() == 0) printf("    %.2f%% of a core\n", used / passed * 100);
    return used / passed < kMost ? "" : "they used " + std::to_string(used) + " s in " + std::to_string(passed) + " s";
  });
  EXPECT_EQ(wrong, "");
}

}  // namespace
}  // namespace sluice::test
