// Arenas: sealed, sparse, shared by the threads of a process, and refused when they are not what was said.
#include "transport/shm/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/support/sanitized.h"

namespace sluice {
namespace {

constexpr std::size_t kBytes = std::size_t{4} << 20;

UniqueFd event(int flags = EFD_CLOEXEC | EFD_NONBLOCK) { return UniqueFd(::eventfd(0, flags)); }
UniqueFd copy(int fd) { return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }
std::size_t pages_in_use(const Arena& arena) {
  struct stat file {};
  EXPECT_EQ(::fstat(arena.memory_fd(), &file), 0);
  return static_cast<std::size_t>(file.st_blocks) * 512 / 4096;
}
UniqueFd memory(std::size_t bytes, int seals) {
  UniqueFd made(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(made.get(), static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(::fcntl(made.get(), F_ADD_SEALS, seals), 0);
  return made;
}

}  // namespace

TEST(Arena, CanNotBeShrunkByAnybody) {
  const auto arena = *Arena::create(kBytes, event().get());
  EXPECT_EQ(arena->bytes(), kBytes);
  EXPECT_NE(::ftruncate(arena->memory_fd(), 4096), 0);
  EXPECT_NE(::fcntl(arena->memory_fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(Arena, TakesMemoryOnlyWhereItWasTouchedAndGivesItBack) {
  const auto arena = *Arena::create(std::size_t{16} << 30, event().get());
  EXPECT_EQ(pages_in_use(*arena), 1u);  // its head
  for (std::size_t at = 0; at < (1 << 20); at += 4096) arena->data()[(std::size_t{1} << 29) + at] = std::byte{1};
  EXPECT_EQ(pages_in_use(*arena), 1u + 256u);
  arena->give_back((std::size_t{1} << 29) + 64, (1 << 20) - 64);
  EXPECT_EQ(pages_in_use(*arena), 1u + 1u) << "all but the page that is not whole";
  EXPECT_EQ(arena->data()[(std::size_t{1} << 29) + 4096], std::byte{0});
}

TEST(Arena, IsMappedOnceInAProcess) {
  const UniqueFd bell = event();
  std::byte* first = nullptr;
  ArenaName name{};
  {
    const auto arena = *Arena::create(kBytes, bell.get());
    const auto joined = *Arena::join(arena->name(), kBytes, copy(arena->memory_fd()), copy(arena->event_fd()));
    EXPECT_EQ(joined.get(), arena.get());
    first = arena->data();
    name = arena->name();
  }
  ASSERT_NE(first, nullptr);
  // Gone with its last user: the name can be entered anew.
  const UniqueFd other = memory(kBytes, F_SEAL_SHRINK);
  EXPECT_TRUE(Arena::join(name, kBytes, copy(other.get()), copy(bell.get())).ok());
}

TEST(Arena, IsSeenByWhoMapsItElsewhere) {
  const UniqueFd bell = event();
  const UniqueFd shared = memory(kBytes, F_SEAL_SHRINK);
  const auto one = *Arena::join({1, 2}, kBytes, copy(shared.get()), copy(bell.get()));
  const auto two = *Arena::join({3, 4}, kBytes, copy(shared.get()), copy(bell.get()));
  one->data()[5000] = std::byte{9};
  EXPECT_EQ(two->data()[5000], std::byte{9});
}

TEST(ArenaRefuses, WhatIsNotASealedFileOfTheSizeThatWasSaid) {
  const UniqueFd bell = event();
  const auto join = [&](std::size_t bytes, UniqueFd what) {
    return Arena::join({7, 7}, bytes, std::move(what), copy(bell.get())).status().code();
  };
  EXPECT_EQ(join(kBytes, memory(kBytes, F_SEAL_GROW)), Code::refused);
  EXPECT_EQ(join(kBytes, memory(kBytes - 4096, F_SEAL_SHRINK)), Code::refused);
  EXPECT_EQ(join(kBytes, memory(kBytes + 4096, F_SEAL_SHRINK)), Code::refused);
  EXPECT_EQ(join(kBytes - 1, memory(kBytes - 1, F_SEAL_SHRINK)), Code::refused);
  EXPECT_EQ(join(4096, memory(4096, F_SEAL_SHRINK)), Code::refused);
  EXPECT_EQ(join(~std::size_t{0}, memory(kBytes, F_SEAL_SHRINK)), Code::refused);
  EXPECT_EQ(join(kBytes, event()), Code::refused);
  EXPECT_EQ(join(kBytes, UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC))), Code::refused);
  EXPECT_EQ(join(kBytes, {}), Code::refused);
  EXPECT_EQ(join(kBytes, memory(kBytes, F_SEAL_SHRINK)), Code::ok);
}

TEST(ArenaRefuses, ABellThatCouldBlockTheRinger) {
  const UniqueFd shared = memory(kBytes, F_SEAL_SHRINK);
  EXPECT_EQ(Arena::join({7, 7}, kBytes, copy(shared.get()), event(EFD_CLOEXEC)).status().code(), Code::refused);
}

TEST(ArenaRefuses, AnotherMemoryUnderAKnownName) {
  const UniqueFd bell = event();
  const auto arena = *Arena::create(kBytes, bell.get());
  EXPECT_EQ(Arena::join(arena->name(), kBytes, memory(kBytes, F_SEAL_SHRINK), copy(bell.get())).status().code(),
            Code::refused);
}

// Makes an arena in a process of its own under a limit; the exit code says what came of it.
int bytes_under_limit(int resource, rlim_t limit, std::size_t wanted) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit both{limit, limit};
    if (::setrlimit(resource, &both) != 0) ::_exit(100);
    const auto arena = Arena::create(wanted, event().get());
    ::_exit(arena.ok() ? static_cast<int>((*arena)->bytes() >> 20) : 101);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Arena, IsSmallerWhereFilesAreLimited) {
  EXPECT_EQ(bytes_under_limit(RLIMIT_FSIZE, std::size_t{8} << 20, std::size_t{64} << 20), 8);
  EXPECT_EQ(bytes_under_limit(RLIMIT_FSIZE, 4096, std::size_t{64} << 20), 101);
}

TEST(Arena, IsSmallerWhereAddressSpaceIsLimited) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer needs more address space than the limit leaves";
  const int mebibytes = bytes_under_limit(RLIMIT_AS, std::size_t{200} << 20, std::size_t{16} << 30);
  EXPECT_TRUE(mebibytes == 64 || mebibytes == 128) << mebibytes;
}

}  // namespace sluice
