#include "base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace sluice {
namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }
int a_descriptor() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

TEST(UniqueFd, ClosesWhatItOwnsOnce) {
  int number = -1;
  {
    const UniqueFd fd(a_descriptor());
    number = fd.get();
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(UniqueFd, MovesOwnership) {
  UniqueFd first(a_descriptor());
  const int number = first.get();
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): what is promised
  EXPECT_EQ(second.get(), number);
  UniqueFd third(a_descriptor());
  const int closed = third.get();
  third = std::move(second);
  EXPECT_FALSE(is_open(closed));
  EXPECT_EQ(third.release(), number);
  EXPECT_TRUE(is_open(number));
  ::close(number);
}

}  // namespace
}  // namespace sluice
