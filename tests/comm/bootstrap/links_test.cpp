// Streams for transports: delivered at both ends, for both classes, in every order of asking.
#include <sys/socket.h>

#include <map>

#include "tests/comm/bootstrap/job.h"

namespace sluice::test {
namespace {

// Takes streams and failures; everything else is not asked of it.
class TakingTransport final : public Transport {
 public:
  explicit TakingTransport(LinkClass link) : link_(link) {}
  LinkClass link_class() const override { return link_; }
  Capabilities capabilities(Rank) const override { return {}; }
  Result<OutFlow*> open_out(Rank, FlowId, RingShape) override { return Error{Code::unsupported, ""}; }
  Result<InFlow*> open_in(Rank, FlowId, RingShape) override { return Error{Code::unsupported, ""}; }
  void use_lane(std::uint64_t, const LaneRules&) override {}
  void close_flows(std::uint64_t) override {}
  std::size_t progress() override { return 0; }
  void wait(Nanoseconds) override {}
  void prepare_wait() override {}
  void cancel_wait() override {}
  void wake() override {}
  int wait_fd() const override { return -1; }
  Status peer_status(Rank) const override { return {}; }
  void fail_peer(Rank peer, Status why) override {
    const std::lock_guard lock(mutex_);
    failures_.emplace(peer, std::move(why));
    changed_.notify_all();
  }
  void adopt(LinkId id, UniqueFd stream) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(streams_.contains(id)) << "a second stream of rank " << id.peer;
    streams_[id] = std::move(stream);
    changed_.notify_all();
  }
  void* allocate_window(std::size_t) override { return nullptr; }
  void free_window(void*) override {}

  // -1: none came.
  int stream(LinkId id, Nanoseconds at_most = 10s) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, [&] { return streams_.contains(id); });
    return streams_.contains(id) ? streams_.at(id).get() : -1;
  }
  Status failure(Rank peer, Nanoseconds at_most = 10s) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, [&] { return failures_.contains(peer); });
    return failures_.contains(peer) ? failures_.at(peer) : Status();
  }

 private:
  LinkClass link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<LinkId, UniqueFd> streams_;
  std::map<Rank, Status> failures_;
};

std::string exchange(int from, int to, const std::string& text) {
  EXPECT_EQ(::send(from, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  std::string got(text.size(), '\0');
  for (std::size_t at = 0; at < got.size();) {
    const ssize_t count = ::recv(to, got.data() + at, got.size() - at, 0);
    if (count > 0) at += static_cast<std::size_t>(count);
    if (count == 0) break;
  }
  return got;
}

class LinksOfClass : public testing::TestWithParam<LinkClass> {
 protected:
  void join(int ranks) {
    job = join_threads(ranks);
    ASSERT_TRUE(job.whole());
    for (int rank = 0; rank < ranks; ++rank) transports.push_back(std::make_unique<TakingTransport>(GetParam()));
  }
  void deliver(Rank rank) {
    job.controls[static_cast<std::size_t>(rank)]->deliver_links_to(GetParam(),
                                                                   transports[static_cast<std::size_t>(rank)].get());
  }
  void want(Rank rank, Rank peer) { job.controls[static_cast<std::size_t>(rank)]->want_link({peer}, GetParam()); }
  TakingTransport& transport(Rank rank) { return *transports[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<TakingTransport>> transports;  // outlive the controls
  Job job;
};
INSTANTIATE_TEST_SUITE_P(Classes, LinksOfClass, testing::Values(LinkClass::shared_memory, LinkClass::tcp));

TEST_P(LinksOfClass, EveryPairGetsOneStreamThatCarriesBothWays) {
  constexpr int kRanks = 5;
  join(kRanks);
  for (Rank rank = 0; rank < kRanks; ++rank) deliver(rank);
  for (Rank a = 0; a < kRanks; ++a)
    for (Rank b = 0; b < kRanks; ++b)
      for (int twice = 0; twice < 2; ++twice)
        if (a != b) want(a, b);
  for (Rank a = 0; a < kRanks; ++a)
    for (Rank b = a + 1; b < kRanks; ++b) {
      const int here = transport(a).stream({b});
      const int there = transport(b).stream({a});
      ASSERT_GE(here, 0);
      ASSERT_GE(there, 0);
      const std::string text = std::to_string(a) + " to " + std::to_string(b);
      EXPECT_EQ(exchange(here, there, text), text);
      EXPECT_EQ(exchange(there, here, text), text);
    }
  job.leave_all();
}

TEST_P(LinksOfClass, EveryLaneHasAStreamOfItsOwn) {
  join(2);
  deliver(0);
  deliver(1);
  for (std::uint8_t lane = 0; lane < kLanes; ++lane)
    for (Rank rank = 0; rank < 2; ++rank)
      job.controls[static_cast<std::size_t>(rank)]->want_link({1 - rank, lane}, GetParam());
  for (std::uint8_t lane = 0; lane < kLanes; ++lane) {
    const int here = transport(0).stream({1, lane});
    const int there = transport(1).stream({0, lane});
    ASSERT_GE(here, 0);
    ASSERT_GE(there, 0);
    const std::string text = "lane " + std::to_string(lane);
    EXPECT_EQ(exchange(here, there, text), text);
  }
  job.leave_all();
}

TEST_P(LinksOfClass, AStreamWaitsForATransportThatIsSetLater) {
  join(2);
  deliver(0);
  want(0, 1);
  ASSERT_GE(transport(0).stream({1}), 0);
  EXPECT_EQ(exchange(transport(0).stream({1}), transport(0).stream({1}), ""), "");
  std::this_thread::sleep_for(20ms);
  deliver(1);
  const int there = transport(1).stream({0});
  ASSERT_GE(there, 0);
  want(1, 0);
  EXPECT_EQ(exchange(transport(0).stream({1}), there, "early"), "early");
  job.leave_all();
}

TEST_P(LinksOfClass, TheHigherRankMayAskLongBeforeTheLower) {
  join(2);
  deliver(0);
  deliver(1);
  want(1, 0);
  EXPECT_EQ(transport(1).stream({0}, 50ms), -1);
  want(0, 1);
  EXPECT_GE(transport(1).stream({0}), 0);
  EXPECT_GE(transport(0).stream({1}), 0);
  job.leave_all();
}

TEST_P(LinksOfClass, ALostPeerFailsAtTheTransport) {
  join(3);
  deliver(0);
  deliver(1);
  want(1, 0);
  job.controls[2].reset();  // no farewell
  const Status lost = transport(0).failure(2);
  EXPECT_EQ(lost.code(), Code::peer_lost);
  EXPECT_NE(lost.text().find("rank 2"), std::string::npos) << lost.text();
  want(1, 2);
  EXPECT_EQ(transport(1).failure(2).code(), Code::peer_lost);
  job.leave_all();
}

TEST_P(LinksOfClass, APeerThatLeftFailsOnlyWhoeverStillWantsALink) {
  join(3);
  deliver(0);
  deliver(1);
  want(1, 0);  // waits for rank 0, which leaves instead
  job.controls[0]->leave();
  const Status left = transport(1).failure(0);
  EXPECT_EQ(left.code(), Code::peer_lost);
  EXPECT_NE(left.text().find("has left the job"), std::string::npos) << left.text();
  EXPECT_TRUE(transport(1).failure(2, 50ms).ok());
  job.leave_all();
}

TEST(Links, SharedMemoryAcrossHostsIsRefusedByName) {
  Job job = join_threads(2, own_host);
  ASSERT_TRUE(job.whole());
  TakingTransport transport(LinkClass::shared_memory);
  job.controls[0]->deliver_links_to(LinkClass::shared_memory, &transport);
  job.controls[0]->want_link({1}, LinkClass::shared_memory);
  EXPECT_EQ(transport.failure(1).code(), Code::unsupported);
  job.leave_all();
}

TEST(Links, AStrangeRankIsRefusedByName) {
  Job job = join_threads(2);
  ASSERT_TRUE(job.whole());
  TakingTransport transport(LinkClass::tcp);
  job.controls[0]->deliver_links_to(LinkClass::tcp, &transport);
  for (const Rank strange : {-1, 2, 0}) {
    job.controls[0]->want_link({strange}, LinkClass::tcp);
    EXPECT_EQ(transport.failure(strange).code(), Code::invalid_argument);
  }
  job.leave_all();
}

}  // namespace
}  // namespace sluice::test
