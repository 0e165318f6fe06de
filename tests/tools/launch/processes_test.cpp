// Every way that a child can end, as the parent sees it.
#include "tools/launch/processes.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

namespace sluice::tools {
namespace {

using std::chrono::milliseconds;

LaunchOutcome run(int processes, const std::function<int(int)>& body, Nanoseconds grace = milliseconds(200)) {
  auto outcome = run_processes({.processes = processes, .grace = grace}, body);
  EXPECT_TRUE(outcome.ok());
  return *std::move(outcome);
}

TEST(Processes, AllEndingWithZeroIsSuccess) {
  const LaunchOutcome outcome = run(3, [](int) { return 0; });
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.text, "");
}

TEST(Processes, TheFirstFailureDecidesTheExitCode) {
  const LaunchOutcome outcome = run(3, [](int index) {
    if (index == 1) return 3;
    std::this_thread::sleep_for(milliseconds(100));
    return index == 2 ? 5 : 0;
  });
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.failed_process, 1);
  EXPECT_NE(outcome.text.find("ended with exit code 3"), std::string::npos) << outcome.text;
}

TEST(Processes, OneKilledBySignalIsNamed) {
  const LaunchOutcome outcome = run(3, [](int index) {
    if (index == 2) ::raise(SIGKILL);
    return 0;
  });
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  EXPECT_NE(outcome.text.find("process 2 (pid "), std::string::npos) << outcome.text;
  EXPECT_NE(outcome.text.find("was killed by signal 9"), std::string::npos) << outcome.text;
}

// A killed process lets go of its connections before it can be reaped: who failed because of it may be reaped first.
TEST(Processes, OneKilledExplainsAnEarlierExitCode) {
  const LaunchOutcome outcome = run(
      3,
      [](int index) {
        if (index == 0) return 3;
        std::this_thread::sleep_for(milliseconds(100));
        if (index == 1) ::raise(SIGKILL);
        return 3;
      },
      std::chrono::seconds(20));
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  EXPECT_EQ(outcome.failed_process, 1);
}

TEST(Processes, OthersAreEndedAfterTheGrace) {
  const auto begin = std::chrono::steady_clock::now();
  const LaunchOutcome outcome = run(2, [](int index) {
    if (index == 0) return 4;
    for (;;) ::pause();
  });
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Processes, OneThatIgnoresSigtermIsKilled) {
  const LaunchOutcome outcome = run(2, [](int index) {
    if (index == 0) return 4;
    ::signal(SIGTERM, SIG_IGN);
    for (;;) ::pause();
  });
  EXPECT_EQ(outcome.exit_code, 4);
}

TEST(Processes, AnInterruptIsForwarded) {
  const LaunchOutcome outcome = run(2, [parent = ::getpid()](int index) -> int {
    std::this_thread::sleep_for(milliseconds(50));
    if (index == 0) ::kill(parent, SIGINT);
    for (;;) ::pause();
  });
  EXPECT_EQ(outcome.exit_code, 128 + SIGINT);
}

TEST(Processes, AnInterruptDoesNotHideAnEarlierFailure) {
  const auto interrupted = [parent = ::getpid()](int index) -> int {
    if (index == 0) return 3;
    std::this_thread::sleep_for(milliseconds(100));
    ::kill(parent, SIGINT);
    for (;;) ::pause();
  };
  const LaunchOutcome outcome = run(2, interrupted, std::chrono::seconds(20));
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_EQ(outcome.failed_process, 0);
}

TEST(Processes, ANumberThatCannotBeRightIsRefused) {
  for (const int processes : {0, -1, kProcessesMax + 1}) {
    const auto outcome = run_processes({.processes = processes}, [](int) { return 0; });
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, Code::invalid_argument);
  }
}

}  // namespace
}  // namespace sluice::tools
