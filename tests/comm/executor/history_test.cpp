// Fingerprints are found by number, forgotten in time, and never read half written.
#include "comm/executor/history.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace sluice::detail {
namespace {

// All fields follow from the number, so a mixture of two entries shows.
Fingerprint numbered(std::uint64_t sequence) {
  Fingerprint print;
  print.communicator = sequence * 3;
  print.sequence = sequence;
  print.count = sequence * 5;
  print.blocks = sequence * 7;
  print.factor = sequence * 11;
  print.algorithm = static_cast<std::uint32_t>(sequence * 13);
  print.kind = OperationKind::broadcast;
  return print;
}

TEST(History, KeepsTheLastSixteen) {
  History history;
  for (std::uint64_t i = 1; i <= 20; ++i) history.note(numbered(i));
  EXPECT_FALSE(history.find(4));
  for (std::uint64_t i = 5; i <= 20; ++i) EXPECT_EQ(history.find(i), numbered(i));
  EXPECT_FALSE(history.find(21));
  EXPECT_EQ(history.all().size(), History::kEntries);
}

TEST(History, IsNeverReadHalfWritten) {
  History history;
  std::atomic<bool> over{false};
  std::atomic<int> torn{0};
  std::thread reader([&] {
    while (!over)
      for (const Fingerprint& print : history.all())
        if (!(print == numbered(print.sequence))) ++torn;
  });
  for (std::uint64_t i = 1; i <= 200'000; ++i) history.note(numbered(i));
  over = true;
  reader.join();
  EXPECT_EQ(torn, 0);
}

}  // namespace
}  // namespace sluice::detail
