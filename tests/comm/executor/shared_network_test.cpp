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
  UrgencyElsewhere urgency_elsewhere() const override { return shown; }
  void claim_network(const NetworkClaim& told) override { claim = told; }
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

  UrgencyElsewhere shown;
  NetworkClaim claim;

 private:
  static Error none() { return {Code::unsupported, "it moves nothing"}; }
  LinkClass link_;
};

class SharedNetwork : public testing::Test {
 protected:
  static Engine::Options options(bool shares_network) {
    return {.spin = 0us, .crowded = false, .thread = false, .shares_network = shares_network};
  }
  NetworkClaim after_pass() {
    engine_.pass();
    return network_.claim;
  }
  void begin(std::uint8_t lane) {
    others_.shown.network |= UrgencyElsewhere::bit(lane);
    ++others_.shown.begins[lane];
  }
  void end(std::uint8_t lane) { others_.shown.network &= static_cast<std::uint8_t>(~UrgencyElsewhere::bit(lane)); }
  VirtualClock clock_;
  IdleTransport others_{LinkClass::shared_memory}, network_{LinkClass::tcp};
  Engine engine_{clock_, {&others_, &network_}, options(true)};
};

NetworkClaim claim(Lane lane, Lane held_below) { return {.lane = lane, .held_below = held_below}; }

TEST_F(SharedNetwork, IsLeftToTheMoreUrgentRankUntilItEnds) {
  EXPECT_EQ(after_pass(), claim({}, {}));
  begin(1);
  EXPECT_EQ(after_pass(), claim(1, 1));
  begin(0);
  EXPECT_EQ(after_pass(), claim(0, 0));
  end(0);
  EXPECT_EQ(after_pass(), claim(1, 1));
  end(1);
  EXPECT_EQ(after_pass(), claim({}, {}));
}

TEST_F(SharedNetwork, IsNotLeftForLongToARankThatDoesNotGoOn) {
  begin(1);
  EXPECT_EQ(after_pass(), claim(1, 1));
  clock_.advance(900us);
  EXPECT_EQ(after_pass(), claim(1, 1));
  clock_.advance(200us);
  EXPECT_EQ(after_pass(), claim(1, {}));
  begin(2);  // is not hidden by the other
  EXPECT_EQ(after_pass(), claim(1, 2));
  end(2);  // is no beginning
  EXPECT_EQ(after_pass(), claim(1, {}));
  begin(1);
  EXPECT_EQ(after_pass(), claim(1, 1));
}

TEST_F(SharedNetwork, IsNotLeftForWhatStaysOnTheHost) {
  others_.shown.any = UrgencyElsewhere::bit(1);
  ++others_.shown.begins[1];
  EXPECT_EQ(after_pass(), claim({}, {}));
}

TEST_F(SharedNetwork, IsHeldBackForNobodyWhereItIsNotShared) {
  Engine alone(clock_, {&others_, &network_}, options(false));
  begin(1);
  alone.pass();
  EXPECT_EQ(network_.claim, claim({}, {}));
}

}  // namespace
}  // namespace sluice::detail
