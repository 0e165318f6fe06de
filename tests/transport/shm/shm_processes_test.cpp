// Shared memory between processes: messages, sleep, windows, and a peer that is killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tests/conformance/worlds.h"
#include "transport/shm/shm_transport.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr RingShape kShape{.slots = 4, .slot_bytes = 256};
constexpr FlowId kFlow{.communicator = 7, .lane = 1, .channel = 0};

// Runs `body` as rank 1 in a process of its own, over the other end of the stream; the process ends when it returns.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void(ShmTransport&)>& body) : pair_(test::unix_pair()) {
    pid_ = ::fork();
    if (pid_ != 0) {
      pair_.b.reset();
      return;
    }
    pair_.a.reset();
    test::SilentDialer dialer;
    auto transport = *ShmTransport::make(1, 2, test::with_arena("64M"), dialer);
    transport->adopt({0}, std::move(pair_.b));
    body(*transport);
    transport.reset();
    ::_exit(0);
  }
  ~OtherProcess() { kill(); }
  UniqueFd stream() { return std::move(pair_.a); }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, 0), nullptr, 0);
  }

 private:
  test::StreamPair pair_;
  pid_t pid_ = 0;
};

bool wait_until(Transport& transport, const std::function<bool()>& done) {
  for (const auto deadline = std::chrono::steady_clock::now() + 20s; !done();) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    transport.prepare_wait();
    if (transport.progress() > 0 || done())
      transport.cancel_wait();
    else
      transport.wait(1s);
  }
  return true;
}

// Sends back what comes, then waits for good.
void echo(ShmTransport& transport) {
  InFlow& in = **transport.open_in(0, kFlow, kShape);
  OutFlow& out = **transport.open_out(0, kFlow, kShape);
  for (;;) {
    if (!wait_until(transport, [&] { return in.ready() && out.room() > 0; })) return;
    const SlotHeader header = in.header();
    std::memcpy(out.reserve(header.bytes), in.payload(header), header.bytes);
    out.commit({.digest = header.digest, .bytes = header.bytes});
    in.release();
  }
}

}  // namespace

TEST(ShmProcesses, SendSleepAndReadEachOthersWindows) {
  OtherProcess other(echo);
  test::SilentDialer dialer;
  auto transport = *ShmTransport::make(0, 2, test::with_arena("64M"), dialer);
  OutFlow& out = **transport->open_out(1, kFlow, kShape);
  InFlow& in = **transport->open_in(1, kFlow, kShape);
  EXPECT_EQ(dialer.wanted, std::vector<Rank>{1});
  transport->adopt({1}, other.stream());
  auto* const window = static_cast<std::byte*>(transport->allocate_window(1 << 20));
  for (std::uint32_t i = 0; i < 2000; ++i) {
    ASSERT_TRUE(wait_until(*transport, [&] { return out.room() > 0; }));
    if (i % 3 == 0) {  // described: the other process reads it in our window
      std::byte* const place = window + 64 * (i % 100);
      std::memcpy(place, &i, sizeof i);
      out.commit({.digest = i, .bytes = sizeof i, .window_offset = out.window_offset(place, sizeof i)});
    } else {
      std::memcpy(out.reserve(sizeof i), &i, sizeof i);
      out.commit({.digest = i, .bytes = sizeof i});
    }
    ASSERT_TRUE(wait_until(*transport, [&] { return in.ready(); })) << "message " << i;
    ASSERT_EQ(in.header().digest, i);
    ASSERT_EQ(std::memcmp(in.payload(in.header()), &i, sizeof i), 0) << "message " << i;
    in.release();
  }
}

TEST(ShmProcesses, NoticeAKilledPeerAtOnce) {
  OtherProcess other(echo);
  test::SilentDialer dialer;
  auto transport = *ShmTransport::make(0, 2, test::with_arena("64M"), dialer);
  OutFlow& out = **transport->open_out(1, kFlow, kShape);
  InFlow& in = **transport->open_in(1, kFlow, kShape);
  transport->adopt({1}, other.stream());
  out.commit({.digest = 1, .bytes = 8});
  ASSERT_TRUE(wait_until(*transport, [&] { return in.ready(); }));
  other.kill();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(wait_until(*transport, [&] { return !transport->peer_status(1).ok(); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 1s);
  EXPECT_EQ(transport->peer_status(1).code(), Code::peer_lost);
  EXPECT_EQ(in.header().digest, 1u);  // what it sent is still there
  while (out.room() > 0) out.commit({.digest = 1, .bytes = 8});
}

}  // namespace sluice
