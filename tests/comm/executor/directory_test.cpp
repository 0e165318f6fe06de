// A communicator can't end while the control plane's thread speaks to it, and that thread never owns one.
#include "comm/executor/directory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "comm/executor/communicator_state.h"

namespace sluice::detail {
namespace {

// Only its address is used.
CommunicatorState& somebody() {
  alignas(CommunicatorState) static std::byte memory[sizeof(CommunicatorState)];
  return reinterpret_cast<CommunicatorState&>(memory);
}

TEST(Directory, RemovingWaitsForAVisitUnderWay) {
  Directory directory;
  directory.add(7, somebody());
  std::latch visiting(1);
  std::atomic<bool> over{false};
  std::thread visitor([&] {
    directory.visit(7, [&](CommunicatorState&) {
      visiting.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      over = true;
    });
  });
  visiting.wait();
  directory.remove(7, somebody());
  EXPECT_TRUE(over);
  visitor.join();
}

TEST(Directory, OnlyTheLivingAreVisited) {
  Directory directory;
  int visits = 0;
  const auto count = [&](CommunicatorState&) { ++visits; };
  directory.add(1, somebody());
  directory.add(2, somebody());
  directory.visit_all(count);
  EXPECT_EQ(visits, 2);
  directory.remove(1, somebody());
  directory.visit(1, count);
  EXPECT_EQ(visits, 2);
  directory.visit(2, count);
  EXPECT_EQ(visits, 3);
}

}  // namespace
}  // namespace sluice::detail
