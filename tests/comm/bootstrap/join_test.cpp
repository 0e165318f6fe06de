// Joins that succeed, and joins that must fail with a text that helps.
#include <thread>

#include "tests/comm/bootstrap/joiner.h"
#include "tests/comm/bootstrap/processes.h"

namespace sluice::test {
namespace {

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

TEST(Join, AMemberThatDiesWhileTheOthersWaitIsNamedToAllAtOnce) {
  const UniqueId id = *Control::make_unique_id(loopback_config());
  Joiner a(id, 0, 4);
  Joiner b(id, 1, 4);
  std::this_thread::sleep_for(100ms);
  {
    const UniqueFd dies = proved_stream(id, {Purpose::join, 2, 0, {}});
    ASSERT_TRUE(dies);
    PeerInfo peer;
    peer.host_name = "ghost";
    const Bytes request = encode(JoinRequest{2, 4, 60'000, peer});
    EXPECT_GT(::send(dies.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    std::this_thread::sleep_for(50ms);
  }
  const Nanoseconds start = RealClock::instance().now();
  for (Joiner* one : {&a, &b}) {
    EXPECT_EQ(one->outcome().code(), Code::peer_lost);
    EXPECT_NE(one->status.text().find("rank 2 (ghost"), std::string::npos) << one->status.text();
  }
  EXPECT_LT(seconds_since(start), 2.0);
}

TEST(Join, WhenTheRootDiesTheMembersHearItAtOnce) {
  const UniqueId id = *make_local_unique_id();
  const JoinPlan plan = [&] {
    JoinPlan root = plan_of(0, 3, 20s, Config());
    const Rendezvous rendezvous = *to_rendezvous(id);
    root.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
    return root;
  }();
  Process root([&](int) { return join_by_plan(plan).ok() ? 1 : 0; });
  Joiner b(id, 1, 3);
  std::this_thread::sleep_for(200ms);
  const Nanoseconds start = RealClock::instance().now();
  root.signal(SIGKILL);
  EXPECT_EQ(b.outcome().code(), Code::peer_lost) << b.status.text();
  EXPECT_LT(seconds_since(start), 2.0);
}

TEST(Join, ASecondRootOfOneIdIsRefusedWithAHint) {
  const UniqueId id = *make_local_unique_id();
  Joiner a(id, 0, 2, 10s);
  std::this_thread::sleep_for(100ms);
  Joiner second(id, 0, 2, 200ms);
  EXPECT_EQ(second.outcome().code(), Code::system);
  EXPECT_NE(second.status.text().find("is another rank 0 of this job running?"), std::string::npos)
      << second.status.text();
  Joiner b(id, 1, 2);
  EXPECT_TRUE(a.outcome().ok()) << a.status.text();
  EXPECT_TRUE(b.outcome().ok()) << b.status.text();
  leave({&a, &b});
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
