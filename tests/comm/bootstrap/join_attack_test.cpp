// Enemies and accidents that must not disturb a join: wrong secrets, noise, half handshakes, malformed requests, other users.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/log.h"
#include "base/rng.h"
#include "tests/comm/bootstrap/joiner.h"
#include "tests/comm/bootstrap/processes.h"

namespace sluice::test {
namespace {

UniqueId other_secret(const UniqueId& id) {
  Rendezvous rendezvous = *to_rendezvous(id);
  rendezvous.secret[0] ^= std::byte{1};
  return *to_unique_id(rendezvous);
}

TEST(JoinUnderAttack, AWrongSecretIsRefusedSoonAndTheOthersJoin) {
  set_log_level(LogLevel::error);
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner a(id, 0, 3);
  Joiner b(id, 1, 3);
  Joiner wrong(other_secret(id), 2, 3, 10s);
  const Nanoseconds start = RealClock::instance().now();
  EXPECT_EQ(wrong.outcome().code(), Code::refused) << wrong.status.text();
  EXPECT_LT(seconds_since(start), 2.0);
  EXPECT_NE(wrong.status.text().find("secret"), std::string::npos) << wrong.status.text();
  Joiner c(id, 2, 3);
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  EXPECT_TRUE(c.outcome().ok()) << c.status.text();
  leave({&a, &b, &c});
  set_log_level(LogLevel::warn);
}

TEST(JoinUnderAttack, RefusalsAreLoggedWithTheAddress) {
  const UniqueId id = *Control::make_unique_id(loopback_config());
  testing::internal::CaptureStderr();
  Joiner a(id, 0, 2);
  Joiner wrong(other_secret(id), 1, 2, 5s);
  wrong.outcome();
  UniqueFd noise = enemy_stream(id);
  ASSERT_TRUE(noise);
  const std::string text(200, 'x');
  EXPECT_GT(::send(noise.get(), text.data(), text.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(hear(noise).empty()) << "a stranger that does not greet gets no byte";
  Joiner b(id, 1, 2);
  EXPECT_TRUE(a.outcome().ok());
  EXPECT_TRUE(b.outcome().ok());
  leave({&a, &b});
  const std::string logged = testing::internal::GetCapturedStderr();
  EXPECT_NE(logged.find("refused a stream from 127.0.0.1:"), std::string::npos) << logged;
  EXPECT_NE(logged.find("it does not know the secret of this job"), std::string::npos) << logged;
  EXPECT_NE(logged.find("it does not speak this protocol"), std::string::npos) << logged;
}

TEST(JoinUnderAttack, AStrangerGetsANonceAndNothingElse) {
  set_log_level(LogLevel::off);
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner a(id, 0, 2);
  UniqueFd stranger = enemy_stream(id);
  ASSERT_TRUE(stranger);
  std::vector<std::byte> said(kHelloBytes + sizeof(Proof));
  const auto hello = encode(Hello{Purpose::join, 1, 0, {}});
  std::copy(hello.begin(), hello.end(), said.begin());
  EXPECT_EQ(::send(stranger.get(), said.data(), said.size(), MSG_NOSIGNAL), static_cast<ssize_t>(said.size()));
  EXPECT_EQ(hear(stranger).size(), sizeof(Nonce));
  Joiner b(id, 1, 2);
  EXPECT_TRUE(a.outcome().ok());
  EXPECT_TRUE(b.outcome().ok());
  leave({&a, &b});
  set_log_level(LogLevel::warn);
}

// Whoever proves the secret and then says nonsense is refused alone.
TEST(JoinUnderAttack, AMalformedJoinRequestDisturbsNobody) {
  set_log_level(LogLevel::off);
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner a(id, 0, 2);
  Bytes huge = encode(JoinRequest{1, 2, 1000, {}});
  huge[3] = std::byte{0x7f};  // claims 2 GiB
  const std::vector<Bytes> nonsense{huge, encode_bare(FrameType::ready), Bytes(100, std::byte{0xff}),
                                    encode(JoinRequest{3, 2, 1000, {}})};
  for (const Bytes& one : nonsense) {
    const UniqueFd traitor = proved_stream(id, {Purpose::join, 1, 0, {}});
    ASSERT_TRUE(traitor);
    EXPECT_GT(::send(traitor.get(), one.data(), one.size(), MSG_NOSIGNAL), 0);
    EXPECT_TRUE(hear(traitor).empty());
  }
  Joiner b(id, 1, 2);
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  leave({&a, &b});
  set_log_level(LogLevel::warn);
}

// The ports of every rank, after the join, and the Unix sockets too.
TEST(JoinUnderAttack, NoiseOnAnyListenerOfARunningJobDisturbsNobody) {
  set_log_level(LogLevel::off);
  Job job = join_threads(3);
  ASSERT_TRUE(job.whole());
  Rng rng(5);
  for (int i = 0; i < 60; ++i) {
    const PeerInfo& peer = job.controls[0]->peer(i % 3);
    Connecting noise =
        start_connecting(i % 2 == 0 ? Endpoint{peer.unix_name, 0, 0} : Endpoint{"", peer.address, peer.port});
    ASSERT_EQ(noise.error, 0);
    std::vector<std::byte> said(rng.below(200));
    for (std::byte& one : said) one = static_cast<std::byte>(rng.next());
    EXPECT_TRUE(said.empty() || ::send(noise.fd.get(), said.data(), said.size(), MSG_NOSIGNAL) != 0);
  }
  job.controls[1]->flood(notice_of(1, "still here"));
  EXPECT_TRUE(job.ears[0]->wait_for_text("still here"));
  EXPECT_TRUE(job.ears[2]->wait_for_text("still here"));
  job.leave_all();
  for (const auto& ear : job.ears) EXPECT_EQ(ear->losses(), 0);
  set_log_level(LogLevel::warn);
}

TEST(JoinUnderAttack, AnotherUserIsRefusedOnTheUnixSocketBeforeItIsHeard) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  Job job = join_threads(2);
  ASSERT_TRUE(job.whole());
  const std::string unix_name = job.controls[0]->peer(0).unix_name;
  Process other([&](int) {
    if (::setuid(65534) != 0) return 1;
    Connecting stream = start_connecting({unix_name, 0, 0});
    if (stream.error != 0) return 2;
    const auto hello = encode(Hello{Purpose::tree, 1, 0, {}});
    if (::send(stream.fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) return 0;
    pollfd poll{stream.fd.get(), POLLIN, 0};
    std::byte answer;
    if (::poll(&poll, 1, 5000) != 1) return 3;
    return ::recv(stream.fd.get(), &answer, 1, 0) > 0 ? 4 : 0;
  });
  EXPECT_EQ(other.wait(), 0);
  job.leave_all();
}

// Random bytes, connects that close at once, and greetings that are never finished, as fast as one thread can, while ten ranks join.
TEST(JoinUnderAttack, EnemiesOnThePortDoNotStopAJoin) {
  set_log_level(LogLevel::off);
  const UniqueId id = *Control::make_unique_id(loopback_config());
  std::atomic<bool> over{false};
  std::thread enemy([&] {
    Rng rng(7);
    std::vector<UniqueFd> held;
    while (!over) {
      UniqueFd fd = enemy_stream(id);
      if (!fd) continue;
      std::vector<std::byte> noise(rng.below(300));
      for (std::byte& one : noise) one = static_cast<std::byte>(rng.next());
      const auto hello = encode(Hello{static_cast<Purpose>(rng.below(4)), static_cast<Rank>(rng.below(20)), 0, {}});
      if (rng.chance(0.5)) std::copy_n(hello.begin(), std::min(noise.size(), hello.size()), noise.begin());
      if (::send(fd.get(), noise.data(), noise.size(), MSG_NOSIGNAL) < 0) continue;
      if (rng.chance(0.7)) held.push_back(std::move(fd));
      if (held.size() > 600) held.erase(held.begin(), held.begin() + 300);
    }
  });
  std::this_thread::sleep_for(200ms);
  std::vector<std::unique_ptr<Joiner>> joiners;
  for (Rank rank = 0; rank < 10; ++rank) {
    joiners.push_back(std::make_unique<Joiner>(id, rank, 10));
    std::this_thread::sleep_for(20ms);
  }
  for (const auto& one : joiners) EXPECT_TRUE(one->outcome().ok()) << one->status.text();
  over = true;
  enemy.join();
  std::vector<std::thread> leaving;
  for (const auto& one : joiners)
    if (one->control) leaving.emplace_back([&one] { one->control->leave(); });
  for (std::thread& thread : leaving) thread.join();
  set_log_level(LogLevel::warn);
}

TEST(JoinUnderAttack, HeldHalfHandshakesAreClosedAfterTheirDeadline) {
  set_log_level(LogLevel::off);
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner a(id, 0, 2, 30s);
  UniqueFd half = enemy_stream(id);
  ASSERT_TRUE(half);
  const auto hello = encode(Hello{Purpose::join, 1, 0, {}});
  EXPECT_GT(::send(half.get(), hello.data(), hello.size(), MSG_NOSIGNAL), 0);
  const Nanoseconds start = RealClock::instance().now();
  EXPECT_EQ(hear(half).size(), sizeof(Nonce));
  EXPECT_LT(seconds_since(start), 4.0);
  Joiner b(id, 1, 2);
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  leave({&a, &b});
  set_log_level(LogLevel::warn);
}

}  // namespace
}  // namespace sluice::test
