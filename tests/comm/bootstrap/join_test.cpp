// Joins that must fail with a text that helps, and joins that enemies and accidents must not disturb.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstddef>
#include <cstring>

#include "base/log.h"
#include "base/rng.h"
#include "comm/bootstrap/handshake.h"
#include "comm/bootstrap/root_listener.h"
#include "comm/bootstrap/sockets.h"
#include "tests/comm/bootstrap/job.h"

namespace sluice::test {
namespace {

Config loopback_config() {
  Config config;
  EXPECT_TRUE(config.set(Setting::interface, "127.0.0.0/8", Origin::file).ok());
  return config;
}

// Joins one rank in a thread of its own.
struct Joiner {
  Joiner(const UniqueId& id, Rank rank, int ranks, Nanoseconds deadline = 20s) {
    thread = std::thread([this, id, rank, ranks, deadline] {
      const Config config = loopback_config();
      auto joined = Control::join({id, rank, ranks, deadline, &config});
      status = joined.status();
      if (joined.ok()) control = *std::move(joined);
    });
  }
  Status& outcome() {
    if (thread.joinable()) thread.join();
    return status;
  }
  ~Joiner() { outcome(); }
  std::thread thread;
  Status status;
  std::unique_ptr<Control> control;
};

void leave(std::initializer_list<Joiner*> joiners) {
  std::vector<std::thread> threads;
  for (Joiner* one : joiners)
    if (one->control) threads.emplace_back([one] { one->control->leave(); });
  for (std::thread& thread : threads) thread.join();
}

// A blocking stream to the root's TCP port, as an enemy opens it.
UniqueFd enemy_stream(const UniqueId& id) {
  const Rendezvous rendezvous = *to_rendezvous(id);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(rendezvous.port);
  to.sin_addr.s_addr = htonl(rendezvous.addresses.front());
  timeval patience{5, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return {};
  return fd;
}

// All that the other end says until it closes.
std::vector<std::byte> hear(const UniqueFd& fd) {
  std::vector<std::byte> all;
  std::byte buffer[4096];
  for (ssize_t got = 0; (got = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;)
    all.insert(all.end(), buffer, buffer + got);
  return all;
}

UniqueId other_secret(const UniqueId& id) {
  Rendezvous rendezvous = *to_rendezvous(id);
  rendezvous.secret[0] ^= std::byte{1};
  return *to_unique_id(rendezvous);
}

TEST(Join, OneRankIsAloneAndReleasesThePort) {
  const UniqueId id = *Control::make_unique_id(loopback_config());
  auto alone = Control::join({id, 0, 1, 1s, nullptr});
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ((*alone)->ranks(), 1);
  EXPECT_FALSE(enemy_stream(id));
}

TEST(Join, AnIdMadeHereIsJoinedByTcpAddressAndPort) {
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner b(id, 1, 3);
  Joiner c(id, 2, 3);
  std::this_thread::sleep_for(50ms);  // the root comes last
  Joiner a(id, 0, 3);
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  EXPECT_TRUE(c.outcome().ok()) << c.status.text();
  EXPECT_FALSE(enemy_stream(id)) << "the root listens no more once all have joined";
  leave({&a, &b, &c});
}

TEST(Join, MembersWaitForARootThatIsNotUpYet) {
  const UniqueId id = *make_local_unique_id();
  Joiner b(id, 1, 2);
  std::this_thread::sleep_for(300ms);
  Joiner a(id, 0, 2);
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  leave({&a, &b});
}

TEST(Join, ATimeoutNamesTheMissingRanksToAll) {
  const UniqueId id = *make_local_unique_id();
  Joiner a(id, 0, 7, 5s);
  Joiner c(id, 2, 7, 1s);  // the most impatient one decides
  for (Joiner* one : {&a, &c}) {
    EXPECT_EQ(one->outcome().code(), Code::timeout);
    EXPECT_NE(one->status.text().find("ranks 1, 3-6 of 7 did not join"), std::string::npos) << one->status.text();
  }
}

TEST(Join, WithoutARootTheTextSaysWhereItWasSought) {
  Rendezvous rendezvous = *to_rendezvous(*make_local_unique_id());
  rendezvous.addresses = {kLoopbackAddress};
  rendezvous.port = 1;
  Joiner b(*to_unique_id(rendezvous), 1, 2, 300ms);
  EXPECT_EQ(b.outcome().code(), Code::timeout);
  EXPECT_NE(b.status.text().find("127.0.0.1:1"), std::string::npos) << b.status.text();
  EXPECT_NE(b.status.text().find("is rank 0 running"), std::string::npos) << b.status.text();
}

TEST(Join, DifferentNumbersOfRanksAreNamedToAll) {
  const UniqueId id = *make_local_unique_id();
  Joiner a(id, 0, 4);
  Joiner b(id, 1, 4);
  std::this_thread::sleep_for(100ms);
  Joiner c(id, 2, 3);
  for (Joiner* one : {&a, &b, &c}) {
    EXPECT_EQ(one->outcome().code(), Code::invalid_argument) << one->status.text();
    EXPECT_NE(one->status.text().find("a job of 3 ranks, rank 0 in one of 4"), std::string::npos) << one->status.text();
  }
}

TEST(Join, ARankTakenTwiceIsNamedToAll) {
  const UniqueId id = *make_local_unique_id();
  Joiner a(id, 0, 4);
  Joiner b(id, 1, 4);
  Joiner c(id, 2, 4);
  std::this_thread::sleep_for(100ms);
  Joiner twice(id, 2, 4);
  for (Joiner* one : {&a, &b, &c, &twice}) {
    EXPECT_EQ(one->outcome().code(), Code::invalid_argument) << one->status.text();
    EXPECT_NE(one->status.text().find("rank 2 was taken twice"), std::string::npos) << one->status.text();
  }
}

TEST(Join, ImpossibleRanksAreRefusedAtOnce) {
  const UniqueId id = *make_local_unique_id();
  EXPECT_EQ(Control::join({id, 3, 3, 1s, nullptr}).error().code, Code::invalid_argument);
  EXPECT_EQ(Control::join({id, -1, 3, 1s, nullptr}).error().code, Code::invalid_argument);
  EXPECT_EQ(Control::join({id, 0, 0, 1s, nullptr}).error().code, Code::invalid_argument);
  EXPECT_EQ(Control::join({UniqueId{}, 0, 2, 1s, nullptr}).error().code, Code::invalid_argument);
}

TEST(Join, AWrongSecretIsRefusedSoonAndTheOthersJoin) {
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

TEST(Join, RefusalsAreLoggedWithTheAddress) {
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

TEST(Join, AStrangerGetsANonceAndNothingElse) {
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
TEST(Join, AMalformedJoinRequestDisturbsNobody) {
  set_log_level(LogLevel::off);
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner a(id, 0, 2);
  UniqueFd traitor = enemy_stream(id);
  ASSERT_TRUE(traitor);
  Handshake shake = Handshake::dialer(to_rendezvous(id)->secret, {Purpose::join, 1, 0, {}});
  while (!shake.done()) {
    const Bytes out = shake.take_output();
    ASSERT_EQ(::send(traitor.get(), out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
    Bytes in(shake.wanted());
    ASSERT_EQ(::recv(traitor.get(), in.data(), in.size(), MSG_WAITALL), static_cast<ssize_t>(in.size()));
    ASSERT_TRUE(shake.feed(in).ok());
  }
  Bytes huge = encode(JoinRequest{1, 2, 1000, {}});
  huge[3] = std::byte{0x7f};  // claims 2 GiB
  EXPECT_GT(::send(traitor.get(), huge.data(), huge.size(), MSG_NOSIGNAL), 0);
  EXPECT_TRUE(hear(traitor).empty());
  Joiner b(id, 1, 2);
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  leave({&a, &b});
  set_log_level(LogLevel::warn);
}

// Random bytes, connects that close at once, and greetings that are never finished, as fast as one thread can, while ten ranks join.
TEST(Join, EnemiesOnThePortDoNotStopAJoin) {
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

TEST(Join, HeldHalfHandshakesAreClosedAfterTheirDeadline) {
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

TEST(Join, APortRangeThatIsFullIsNamed) {
  std::vector<Listener> taken;
  PortRange range;
  for (std::uint16_t first = 21000; taken.size() < 2; first = static_cast<std::uint16_t>(first + 2)) {
    taken.clear();
    range = {first, static_cast<std::uint16_t>(first + 1)};
    while (taken.size() < 2) {
      auto one = listen_tcp(kLoopbackAddress, range);
      if (!one.ok()) break;
      taken.push_back(*std::move(one));
    }
  }
  Config config = loopback_config();
  const std::string text = std::to_string(range.first) + "-" + std::to_string(range.last);
  ASSERT_TRUE(config.set(Setting::port_range, text, Origin::file).ok());
  const auto id = Control::make_unique_id(config);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, Code::out_of_resource);
  EXPECT_NE(id.error().text.find(text), std::string::npos) << id.error().text;
}

TEST(Join, AListeningPortComesFromTheRange) {
  const Config probe = loopback_config();
  const std::uint16_t base = to_rendezvous(*Control::make_unique_id(probe))->port;
  Config config = loopback_config();
  const int first = base < 60000 ? base + 1 : base - 1000;
  ASSERT_TRUE(
      config.set(Setting::port_range, std::to_string(first) + "-" + std::to_string(first + 200), Origin::file).ok());
  const auto id = Control::make_unique_id(config);
  ASSERT_TRUE(id.ok()) << id.error().text;
  const int port = to_rendezvous(*id)->port;
  EXPECT_GE(port, first);
  EXPECT_LE(port, first + 200);
  EXPECT_TRUE(Control::join({*id, 0, 1, 1s, nullptr}).ok());
}

TEST(Join, AnInterfaceThatDoesNotExistIsAnErrorThatListsWhatDoes) {
  Config config;
  ASSERT_TRUE(config.set(Setting::interface, "nosuch0", Origin::file).ok());
  const auto id = Control::make_unique_id(config);
  ASSERT_FALSE(id.ok());
  EXPECT_EQ(id.error().code, Code::invalid_argument);
  EXPECT_NE(id.error().text.find("nosuch0"), std::string::npos);
  EXPECT_NE(id.error().text.find("lo 127.0.0.1/8"), std::string::npos) << id.error().text;
}

TEST(Join, AMemberThatGoesAwayWhileTheOthersWaitIsNamed) {
  const UniqueId id = *make_local_unique_id();
  Joiner a(id, 0, 3, 10s);
  Joiner c(id, 2, 3, 400ms);  // gives up before the root's patience ends
  a.outcome();
  c.outcome();
  EXPECT_EQ(a.status.code(), Code::timeout) << a.status.text();
  EXPECT_NE(a.status.text().find("rank 1 of 3 did not join"), std::string::npos) << a.status.text();
}

}  // namespace
}  // namespace sluice::test
