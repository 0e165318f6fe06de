// What people write of lanes, and what becomes of it.
#include "comm/lanes/lane.h"

#include <gtest/gtest.h>

#include "comm/lanes/lane_state.h"

namespace sluice {
namespace {

TEST(LaneText, IsReadBackAsItWasWritten) {
  for (const char* text : {"tp", "tp:urgent", "dp:bulk:4", "dp:bulk:4:min=10M:max=1G:flight=64K", "x:max=1536",
                           "a.b-c_9:normal", "dp:copy=2G:cores=0-3+7", "dp:cores=any"}) {
    const auto lane = parse_lane(text);
    ASSERT_TRUE(lane.ok()) << text << ": " << lane.status().text();
    EXPECT_EQ(to_text(*lane), text);
    EXPECT_EQ(*parse_lane(to_text(*lane)), *lane);
  }
}

TEST(LaneText, FillsTheNamedFieldsAndLeavesTheOthersOpen) {
  const Lane lane = *parse_lane("dp:bulk:3:max=2M");
  EXPECT_EQ(lane, (Lane{.name = "dp", .priority = Priority::bulk, .weight = 3, .bytes_per_second_max = 2 << 20}));
  EXPECT_FALSE(parse_lane("dp")->priority.has_value());
}

struct BadLane {
  const char* text;
  const char* says;
};
class LaneTextRefused : public testing::TestWithParam<BadLane> {};
INSTANTIATE_TEST_SUITE_P(
    Texts, LaneTextRefused,
    testing::Values(BadLane{"", "its name"}, BadLane{":urgent", "its name"}, BadLane{"a b", "its name"},
                    BadLane{"a/b", "its name"}, BadLane{"tp:fast", "priority is 'fast'"},
                    BadLane{"tp:urgent:0", "weight is '0'"}, BadLane{"tp:urgent:1025", "weight is '1025'"},
                    BadLane{"tp:urgent:x", "weight is 'x'"}, BadLane{"tp:urgent:-1", "weight is '-1'"},
                    BadLane{"tp:min=", "min is ''"}, BadLane{"tp:speed=1M", "'speed=1M'"},
                    BadLane{"tp:min=2M:max=1M", "at most its max"}, BadLane{"tp:max=1M:urgent", "'urgent'"},
                    BadLane{"tp:flight=1", "flight is '1'"}, BadLane{"tp:urgent:1:2", "'2'"},
                    BadLane{"tp:cores=3-1", "cores is '3-1'"}, BadLane{"tp:cores=", "cores is ''"},
                    BadLane{"tp:cores=1+", "cores is '1+'"}, BadLane{"tp:cores=1024", "cores is '1024'"},
                    BadLane{"tp:copy=-1", "copy is '-1'"}, BadLane{"a123456789012345678901234567890123", "its name"}));

TEST_P(LaneTextRefused, SaysWhichPartAndWhatIsAllowed) {
  const auto lane = parse_lane(GetParam().text);
  ASSERT_FALSE(lane.ok()) << GetParam().text;
  EXPECT_EQ(lane.error().code, Code::invalid_argument);
  EXPECT_NE(lane.error().text.find(GetParam().says), std::string::npos) << lane.error().text;
}

TEST(LaneTexts, AreSeparatedByCommasAndNameEachLaneOnce) {
  EXPECT_EQ(parse_lanes("")->size(), 0U);
  EXPECT_EQ(parse_lanes("tp:urgent,dp:bulk")->size(), 2U);
  const auto twice = parse_lanes("tp:urgent,tp:bulk");
  ASSERT_FALSE(twice.ok());
  EXPECT_NE(twice.error().text.find("'tp' is described twice"), std::string::npos);
}

TEST(LaneCompletion, PrefersCodeToConfigurationToDefaults) {
  const std::vector<Lane> configured = *parse_lanes("dp:bulk:3:max=2M,default:urgent");
  const Lane asked{.name = "dp", .priority = Priority::normal};
  EXPECT_EQ(complete(asked, configured), *parse_lane("dp:normal:3:min=0:max=2M:flight=0:copy=0:cores=any"));
  EXPECT_EQ(complete(Lane{}, configured), *parse_lane("default:urgent:1:min=0:max=0:flight=0:copy=0:cores=any"));
  EXPECT_EQ(complete({.name = "other"}, configured),
            *parse_lane("other:normal:1:min=0:max=0:flight=0:copy=0:cores=any"));
}

TEST(LaneState, KeepsEveryLaneAlive) {
  const detail::LaneState state(complete({.name = "dp", .priority = Priority::bulk, .weight = 7}, {}), 5);
  EXPECT_EQ(state.rules.number, 5U);
  EXPECT_EQ(state.rules.priority, 3);
  EXPECT_EQ(state.rules.weight, 7U);
  EXPECT_EQ(state.rules.min_rate, kLaneFloor);
  EXPECT_FALSE(state.ceiling.has_value());
  EXPECT_TRUE(state.plain);
}

TEST(LaneState, IsHeldByWhatCopiesAsByWhatIsSent) {
  detail::LaneState state(complete(*parse_lane("dp:copy=64M"), {}), 1);
  EXPECT_FALSE(state.plain);
  const Nanoseconds now = std::chrono::seconds(1);
  EXPECT_FALSE(state.held(now));
  state.charge(std::uint64_t{1} << 30, 0, now);
  EXPECT_FALSE(state.held(now)) << "what is sent is not what is copied";
  state.charge(0, std::uint64_t{64} << 20, now);
  EXPECT_TRUE(state.held(now));
  EXPECT_GT(state.wait(now), std::chrono::milliseconds(900));
  EXPECT_FALSE(state.held(now + std::chrono::milliseconds(1001)));
}

TEST(CoresText, NamesEachCoreOnceInOrder) {
  EXPECT_EQ(*parse_cores("6+2-3+3"), (Cores{2, 3, 6}));
  EXPECT_EQ(to_text(Cores{0, 1, 2, 5}), "0-2+5");
  EXPECT_FALSE(parse_cores("2-").has_value());
  EXPECT_FALSE(allowed_cores().empty());
}

}  // namespace
}  // namespace sluice
