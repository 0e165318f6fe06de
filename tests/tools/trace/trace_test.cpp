// What becomes of flight recorders: read back, drawn, and who is named. Some are recorded here, most are made up.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/rng.h"
#include "comm/communicator.h"
#include "tools/trace/diagnose.h"
#include "tools/trace/pictures.h"
#include "tools/trace/rank_trace.h"

namespace sluice::tools {
namespace {

constexpr int kRanks = 4;

TracedCommunicator world_of(Rank rank) {
  return {.number = 0,
          .id = 1,
          .name = "world",
          .lane = "default",
          .priority = "normal",
          .rank = rank,
          .members = {0, 1, 2, 3},
          .posted = 5};
}

// Rank `rank`, which waits for `for_whom` in collective `sequence`; -1: it waits for nobody.
RankTrace trace_of(Rank rank, Rank for_whom, std::uint64_t sequence = 5) {
  RankTrace trace{.rank = rank, .ranks = kRanks, .host = "h" + std::to_string(rank / 2), .job = "7"};
  trace.communicators.push_back(world_of(rank));
  if (for_whom >= 0)
    trace.communicators[0].unfinished.push_back(
        {.kind = "all_reduce", .sequence = sequence, .waits_for = for_whom, .stuck_seconds = 2});
  return trace;
}

TEST(Diagnose, ARankThatSaysNothingIsWhereTheWaitsEnd) {
  const Diagnosis found = diagnose({trace_of(0, 3), trace_of(1, 0), trace_of(3, 2)});
  EXPECT_EQ(found.kind, Diagnosis::Kind::silent);
  EXPECT_EQ(found.culprit, 2);
  EXPECT_NE(found.text.find("rank 2 says nothing, and 3 of 4 ranks wait for it"), std::string::npos) << found.text;
}

TEST(Diagnose, ARankThatIsNotInTheOperationIsNamed) {
  const Diagnosis found = diagnose({trace_of(0, 1), trace_of(1, -1), trace_of(2, 1), trace_of(3, 2)});
  EXPECT_EQ(found.kind, Diagnosis::Kind::absent);
  EXPECT_EQ(found.culprit, 1);
  EXPECT_NE(found.text.find("rank 1 is not in all_reduce #5 on 'world'"), std::string::npos) << found.text;
}

TEST(Diagnose, WhoIsReportedByMostWasLost) {
  std::vector<RankTrace> traces{trace_of(0, 1), trace_of(2, 1), trace_of(3, 1)};
  for (RankTrace& one : traces) one.lost = {1};
  const Diagnosis found = diagnose(traces);
  EXPECT_EQ(found.kind, Diagnosis::Kind::lost);
  EXPECT_EQ(found.culprit, 1);
}

TEST(Diagnose, AHostThatWasCutOffIsToBlameThoughItReportsTheOthers) {
  std::vector<RankTrace> traces{trace_of(0, 3), trace_of(1, 3), trace_of(2, 3), trace_of(3, 0)};
  for (Rank rank = 0; rank < 3; ++rank) traces[static_cast<std::size_t>(rank)].lost = {3};
  traces[3].lost = {0, 1, 2};
  const Diagnosis found = diagnose(traces);
  EXPECT_EQ(found.kind, Diagnosis::Kind::lost);
  EXPECT_EQ(found.culprit, 3);
}

TEST(Diagnose, TwoThatReportEachOtherBlameTheNetwork) {
  std::vector<RankTrace> traces{trace_of(0, 1), trace_of(1, 0)};
  traces[0].lost = {1};
  traces[1].lost = {0};
  const Diagnosis found = diagnose(traces);
  EXPECT_EQ(found.kind, Diagnosis::Kind::network);
  EXPECT_FALSE(found.culprit.has_value());
}

TEST(Diagnose, CallsInOppositeOrdersAreACircle) {
  std::vector<RankTrace> traces{trace_of(0, 1), trace_of(1, 0)};
  traces[1].communicators[0].unfinished[0].sequence = 6;
  const Diagnosis found = diagnose(traces);
  EXPECT_EQ(found.kind, Diagnosis::Kind::cycle);
  EXPECT_NE(found.text.find("opposite orders"), std::string::npos);
}

TEST(Diagnose, ADisagreementIsSaidAsItWasFound) {
  std::vector<RankTrace> traces{trace_of(0, 1), trace_of(1, 0)};
  traces[1].communicators[0].error = "mismatch: all_reduce #5: rank 1 posted count 5, rank 0 posted count 6";
  const Diagnosis found = diagnose(traces);
  EXPECT_EQ(found.kind, Diagnosis::Kind::diverged);
  EXPECT_NE(found.text.find("rank 1 posted count 5"), std::string::npos);
}

TEST(Diagnose, NobodyIsBlamedWhereNobodyWaits) {
  EXPECT_EQ(diagnose({trace_of(0, -1), trace_of(1, -1)}).kind, Diagnosis::Kind::nothing);
}

class TraceFiles : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "sluice_traces_" + std::to_string(::getpid());
};

TEST_F(TraceFiles, OfARuntimeAreReadBackWithWhatItDid) {
  auto made = Runtime::loop(2, 1, {});
  ASSERT_TRUE(made.ok());
  std::vector<float> in(100'000, 1), out(100'000);
  std::vector<std::vector<float>> outs(2, out);
  std::vector<Work> works;
  for (std::size_t rank = 0; rank < 2; ++rank)
    works.push_back((*made)[rank]->world().all_reduce({in.data(), outs[rank].data(), in.size()}, ReduceOp::sum));
  for (Work& work : works) ASSERT_TRUE(work.wait().ok());
  Work open = (*made)[0]->world().all_reduce({in.data(), outs[0].data(), in.size()}, ReduceOp::sum);
  EXPECT_FALSE(open.test());
  for (const auto& runtime : *made) ASSERT_TRUE(runtime->write_trace(folder_, "a \"test\"").ok());

  const auto job = std::filesystem::directory_iterator(folder_)->path().string();
  const auto traces = read_traces({job});
  ASSERT_TRUE(traces.ok()) << traces.status().text();
  ASSERT_EQ(traces->size(), 2U);
  const RankTrace& first = traces->front();
  EXPECT_EQ(first.why, "a \"test\"");
  EXPECT_EQ(first.communicators.at(0).name, "world");
  ASSERT_EQ(first.communicators[0].unfinished.size(), 1U);
  EXPECT_EQ(first.communicators[0].unfinished[0].sequence, 2U);
  std::uint64_t moved = 0;
  for (const TracedEvent& event : first.events) moved += event.what == "turn" ? event.bytes : 0;
  EXPECT_GE(moved, 50'000 * sizeof(float));  // what is left of a turn is not noted
  const auto done =
      std::find_if(first.events.begin(), first.events.end(), [](const auto& one) { return one.what == "done"; });
  ASSERT_NE(done, first.events.end());
  EXPECT_EQ(done->kind, "all_reduce");
  EXPECT_LE(done->posted_ns, done->at_ns);
  std::int64_t slice = 0;
  for (const TracedEvent& event : first.events) slice = std::max(slice, event.slice);
  EXPECT_GT(slice, 0) << "turns say how far they came";
  EXPECT_EQ(first.communicators[0].unfinished[0].waits_on, "message");

  const Diagnosis found = diagnose(*traces);
  EXPECT_EQ(found.kind, Diagnosis::Kind::absent);
  EXPECT_EQ(found.culprit, 1);
  std::vector<Work> rest;
  rest.push_back((*made)[1]->world().all_reduce({in.data(), outs[1].data(), in.size()}, ReduceOp::sum));
  ASSERT_TRUE(rest[0].wait().ok() && open.wait().ok());
}

TEST_F(TraceFiles, AreTheOwnersAlone) {
  auto made = Runtime::loop(1, 1, {});
  const auto path = (*made)[0]->write_trace(folder_, "");
  ASSERT_TRUE(path.ok()) << path.status().text();
  namespace fs = std::filesystem;
  constexpr auto kOthers = fs::perms::group_all | fs::perms::others_all;
  EXPECT_EQ(fs::status(*path).permissions() & kOthers, fs::perms::none);
  EXPECT_EQ(fs::status(folder_).permissions() & kOthers, fs::perms::none);
  fs::permissions(folder_, fs::perms::others_write, fs::perm_options::add);
  const auto refused = (*made)[0]->write_trace(folder_, "");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::refused);
}

TEST_F(TraceFiles, ThatAreNoneAreRefusedWithTheReason) {
  std::filesystem::create_directory(folder_);
  EXPECT_NE(read_traces({folder_}).status().text().find("holds no rank-N.json"), std::string::npos);
  for (const auto& [text, says] : std::vector<std::pair<std::string, std::string>>{
           {"", "no trace of Sluice"},
           {"[1,2]", "no trace of Sluice"},
           {R"({"sluice_trace":9})", "another version"},
           {R"({"sluice_trace":2})", "'rank' is missing"},
           {R"({"sluice_trace":2,"rank":1e300,"ranks":2})", "'rank' is no number of its kind"},
           {R"({"sluice_trace":2,"rank":-1,"ranks":2})", "'rank' is out of range"},
           {R"({"sluice_trace":2,"rank":"0","ranks":2})", "'rank' is no number"}}) {
    const auto read = parse_trace(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.status().text().find(says), std::string::npos) << read.status().text();
  }
}

// Every byte of a good file changed or cut off: an error or a trace, never a crash.
TEST_F(TraceFiles, ThatAreDamagedNeverHurt) {
  auto made = Runtime::loop(1, 1, {});
  const auto path = (*made)[0]->write_trace(folder_, "damage");
  std::ifstream file(*path);
  const std::string good((std::istreambuf_iterator<char>(file)), {});
  ASSERT_TRUE(parse_trace(good).ok());
  Rng rng(1);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(rng.below(256));
    if (const auto trace = parse_trace(bad); trace.ok()) {
      diagnose({*trace});
      to_svg({*trace});
      to_chrome({*trace});
    }
    (void)parse_trace(good.substr(0, at));
  }
}

TEST(TracePictures, ShowEveryOperationOnce) {
  RankTrace trace = trace_of(0, -1);
  for (int i = 0; i < 3; ++i)
    trace.events.push_back({.at_ns = 2000 + 1000 * i,
                            .posted_ns = 1000 + 1000 * i,
                            .what = "done",
                            .kind = "all_reduce",
                            .communicator = 0,
                            .sequence = 1U + static_cast<unsigned>(i),
                            .bytes = 64});
  trace.events.push_back({.at_ns = 2500,
                          .posted_ns = 2000,
                          .what = "wait",
                          .kind = "all_reduce",
                          .sequence = 2,
                          .slice = 7,
                          .peer = 3,
                          .reason = "room"});
  const auto chrome = nlohmann::json::parse(to_chrome({trace}));
  int begins = 0;
  for (const auto& event : chrome["traceEvents"]) begins += event["ph"] == "b" ? 1 : 0;
  EXPECT_EQ(begins, 3);
  const std::string svg = to_svg({trace});
  EXPECT_NE(svg.find("all_reduce #3 on world"), std::string::npos);
  EXPECT_NE(svg.find("#cc0000"), std::string::npos);
  EXPECT_NE(svg.find("slice 7, waits for rank 3 (room)"), std::string::npos);
}

}  // namespace
}  // namespace sluice::tools
