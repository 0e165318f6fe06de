// Ranks of one host that share its network: what one shows holds back what others hand to it, for a while.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "comm/executor/engine.h"

namespace sluice::detail {
namespace {

using namespace std::chrono_literals;
using Lane = std::optional<std::uint8_t>;

// Moves nothing; of whatever class.
class IdleTransport final : public Transport {
 public:
  explicit IdleTransport(LinkClass link) : link_(link) {}
  LinkClass link_class() const override { return link_; }
  Capabilities capabilities(Rank) const override { return {}; }
  Result<OutFlow*> open_out(Rank, FlowId, RingShape) override { return none(); }
  Result<InFlow*> open_in(Rank, FlowId, RingShape) override { return none(); }
  void use_lane(std::uint64_t, const LaneRules&) override {}
  void close_flows(std::uint64_t) override {}
  std::uint64_t urgency_elsewhere(std::uint8_t lane) const override { return shown && *shown < lane ? changes : 0; }
  void hold_below(Lane lane) override { held_below = lane; }
  std::size_t progress() override { return 0; }
  void prepare_wait() override {}
  void cancel_wait() override {}
  void wait(Nanoseconds) override {}
  void wake() override {}
  int wait_fd() const override { return -1; }
  Status peer_status(Rank) const override { return {}; }
  void fail_peer(Rank, Status) override {}
  void adopt(LinkId, UniqueFd) override {}
  void* allocate_window(std::size_t) override { return nullptr; }
  void free_window(void*) override {}

  void show(Lane lane) { shown = lane, ++changes; }
  Lane shown;
  std::uint64_t changes = 0;
  Lane held_below;

 private:
  static Error none() { return {Code::unsupported, "it moves nothing"}; }
  LinkClass link_;
};

class SharedNetwork : public testing::Test {
 protected:
  static Engine::Options without_thread() { return {.spin = 0us, .crowded = false, .thread = false}; }
  Lane after_pass() {
    engine_.pass();
    return network_.held_below;
  }
  VirtualClock clock_;
  IdleTransport others_{LinkClass::shared_memory}, network_{LinkClass::tcp};
  Engine engine_{clock_, {&others_, &network_}, without_thread()};
};

TEST_F(SharedNetwork, IsLeftToTheMoreUrgentRankUntilItEnds) {
  EXPECT_EQ(after_pass(), Lane{});
  others_.show(1);
  EXPECT_EQ(after_pass(), Lane{1});
  others_.show(0);
  EXPECT_EQ(after_pass(), Lane{0});
  others_.show({});
  EXPECT_EQ(after_pass(), Lane{});
}

TEST_F(SharedNetwork, IsNotLeftForLongToARankThatDoesNotGoOn) {
  others_.show(1);
  EXPECT_EQ(after_pass(), Lane{1});
  clock_.advance(900us);
  EXPECT_EQ(after_pass(), Lane{1});
  clock_.advance(200us);
  EXPECT_EQ(after_pass(), Lane{});
  others_.show(1);  // the next
  EXPECT_EQ(after_pass(), Lane{1});
}

TEST(NetworkOfOneRank, IsHeldBackForNobody) {
  VirtualClock clock;
  IdleTransport others(LinkClass::tcp), network(LinkClass::tcp);
  Engine engine(clock, {&others, &network}, {.spin = 0us, .crowded = false, .thread = false});
  others.show(1);
  engine.pass();
  EXPECT_EQ(network.held_below, Lane{});
}

}  // namespace
}  // namespace sluice::detail
