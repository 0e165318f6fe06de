// Traces of hosts whose clocks differ are laid on one.
#include "tools/trace/clocks.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace sluice::tools {
namespace {

RankTrace trace_of(Rank rank, const std::string& host, std::vector<Rank> members = {0, 1}) {
  RankTrace trace{.rank = rank, .ranks = static_cast<int>(members.size()), .host = host, .job = "7"};
  trace.communicators.push_back({.number = 0, .id = 5, .name = "world", .rank = rank, .members = std::move(members)});
  return trace;
}

TracedEvent ended(std::uint64_t sequence, std::int64_t posted, std::int64_t at, const char* kind = "all_reduce") {
  return {.at_ns = at,
          .posted_ns = posted,
          .what = "done",
          .kind = kind,
          .communicator = 0,
          .sequence = sequence,
          .bytes = 8};
}

// Operations that begin within 30 us of each other and end 20 us after the last came; rank 1's host is `ahead`.
std::vector<RankTrace> two_hosts(std::int64_t ahead, const char* kind = "all_reduce") {
  std::vector<RankTrace> traces{trace_of(0, "a"), trace_of(1, "b")};
  Rng rng(3);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const std::int64_t base = static_cast<std::int64_t>(i) * 1'000'000;
    const auto first = base + static_cast<std::int64_t>(rng.below(30'000));
    const auto second = base + static_cast<std::int64_t>(rng.below(30'000));
    const std::int64_t end = std::max(first, second) + 20'000;
    traces[0].events.push_back(ended(i, first, end, kind));
    traces[1].events.push_back(ended(i, second + ahead, end + ahead, kind));
  }
  return traces;
}

TEST(Clocks, ThatDifferAreLaidOnTheFirstHosts) {
  for (const std::int64_t ahead : {std::int64_t{5'000'000'000}, std::int64_t{-70'000'000}}) {
    std::vector<RankTrace> traces = two_hosts(ahead);
    const std::int64_t before = traces[1].events[0].at_ns;
    const auto clocks = align_clocks(traces);
    ASSERT_EQ(clocks.size(), 2U);
    EXPECT_EQ(clocks[0].host, "a");
    EXPECT_EQ(clocks[0].ahead_ns, 0);
    EXPECT_EQ(clocks[1].host, "b");
    EXPECT_NEAR(static_cast<double>(clocks[1].ahead_ns), static_cast<double>(ahead), 10'000);
    ASSERT_TRUE(clocks[1].doubt_ns.has_value());
    EXPECT_LE(std::abs(clocks[1].ahead_ns - ahead), *clocks[1].doubt_ns);
    EXPECT_LT(*clocks[1].doubt_ns, 25'000);
    EXPECT_EQ(traces[1].events[0].at_ns, before - clocks[1].ahead_ns);
  }
}

TEST(Clocks, ThatMayAgreeAreLeftAlone) {
  std::vector<RankTrace> traces = two_hosts(2'000);
  const auto clocks = align_clocks(traces);
  EXPECT_EQ(clocks[1].ahead_ns, 0);
  EXPECT_TRUE(clocks[1].doubt_ns.has_value());
}

// The root of a broadcast ends before others have come.
TEST(Clocks, AreNotJudgedByOperationsThatDoNotJoinAll) {
  std::vector<RankTrace> traces = two_hosts(5'000'000'000, "broadcast");
  EXPECT_FALSE(align_clocks(traces)[1].doubt_ns.has_value());
  traces = two_hosts(5'000'000'000);
  for (TracedEvent& event : traces[1].events) event.bytes = 0;
  EXPECT_FALSE(align_clocks(traces)[1].doubt_ns.has_value());
}

// c shares operations with b alone.
TEST(Clocks, AreCarriedFromHostToHost) {
  std::vector<RankTrace> traces = two_hosts(1'000'000'000);
  traces.push_back(trace_of(2, "c", {1, 2}));
  traces[1].communicators.push_back({.number = 1, .id = 6, .rank = 0, .members = {1, 2}});
  traces[2].communicators = {{.number = 0, .id = 6, .rank = 1, .members = {1, 2}}};
  for (std::uint64_t i = 1; i <= 50; ++i) {
    const std::int64_t at = static_cast<std::int64_t>(i) * 1'000'000;
    traces[1].events.push_back(ended(i, at + 1'000'000'000, at + 1'000'010'000));
    traces[1].events.back().communicator = 1;
    traces[2].events.push_back(ended(i, at - 3'000'000'000, at - 2'999'990'000));
  }
  const auto clocks = align_clocks(traces);
  ASSERT_EQ(clocks.size(), 3U);
  EXPECT_EQ(clocks[2].host, "c");
  EXPECT_NEAR(static_cast<double>(clocks[2].ahead_ns), -3e9, 60'000);
}

// A file may be anybody's.
TEST(Clocks, AYearApartAreNotBelieved) {
  std::vector<RankTrace> traces = two_hosts(INT64_MAX / 4 - 200'000'000);
  EXPECT_FALSE(align_clocks(traces)[1].doubt_ns.has_value());
}

}  // namespace
}  // namespace sluice::tools
