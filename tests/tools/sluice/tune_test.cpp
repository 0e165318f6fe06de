// `sluice tune` and `explain --check` as a user meets them: what was measured is found again, and decides.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "comm/tune/tuning_store.h"
#include "tests/comm/tune/scratch_folder.h"
#include "tests/tools/run_program.h"
#include "tools/sluice/check.h"
#include "tools/tune/sweep.h"
#include "transport/topology/probe.h"

namespace sluice::tools {
namespace {

using nlohmann::json;
using test::parsed;
using test::run_program;

TEST(SluiceTune, WhatItMeasuresIsFoundAgainAndUsed) {
  if (!probe_topology().ok()) GTEST_SKIP() << "built without hwloc";
  const test::ScratchFolder folder;
  const std::string home = "XDG_CACHE_HOME=" + folder.path();
  const auto tuned = run_program("sluice tune --quick --ranks 2,3 --bytes 64,4K --json 2>/dev/null", home);
  ASSERT_EQ(tuned.code, 0) << tuned.text;
  const json told = parsed(tuned.text);
  EXPECT_EQ(told["links"].size(), 3u);
  const std::string path = told["file"];
  const auto text = read_tuning_text(path);
  ASSERT_TRUE(text.ok() && *text) << path;
  const auto file = parse_machine_file(**text);
  ASSERT_TRUE(file.ok()) << file.error().text;
  std::size_t algorithms = 0;
  for (const Algorithm& one : all_algorithms()) algorithms += one.supports(2) ? 1 : 0;
  for (const auto& link : file->links) {
    ASSERT_TRUE(link.has_value());
    EXPECT_EQ(link->curves.size(), 2 * algorithms);
    for (const TimeCurve& curve : link->curves) EXPECT_EQ(curve.points.size(), 2u);
  }
  // explain goes by it.
  const json explained = parsed(run_program("sluice explain all_reduce --bytes 1K --ranks 3 --json", home).text);
  EXPECT_EQ(explained["tuning"], path);
  EXPECT_EQ(explained["link"]["source"], "measured");
  EXPECT_EQ(explained["choices"][0]["alternatives"][0]["source"], "measured");
  EXPECT_EQ(explained["choices"][0]["why"], "the least measured time");
  const json scaled = parsed(run_program("sluice explain all_reduce --bytes 1K --ranks 4 --json", home).text);
  EXPECT_EQ(scaled["choices"][0]["alternatives"][0]["source"], "scaled");
  const json off =
      parsed(run_program("sluice explain all_reduce --bytes 1K --ranks 3 --json", home + " SLUICE_TUNING=off").text);
  EXPECT_EQ(off["tuning"], nullptr);
  EXPECT_EQ(off["choices"][0]["alternatives"][0]["source"], "predicted");
  // And so does a job.
  const auto ran = run_program("sluice run -n 2 " SLUICE_PROGRAMS "/all_reduce_perf -b 1K -e 1K -n 1 2>&1",
                               home + " SLUICE_LOG=info");
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_NE(ran.text.find("the times measured in " + path), std::string::npos) << ran.text;
}

TEST(SluiceTune, AMadeUpFileChangesWhatAJobUses) {
  const test::ScratchFolder folder;
  for (const char* favourite : {"ring", "binomial_tree"}) {
    const std::string path = folder.file(favourite, print(test::made_up(Collective::all_reduce, favourite)));
    const std::string by = "SLUICE_LOG=info SLUICE_TUNING=" + path;
    const auto ran = run_program("sluice run -n 2 " SLUICE_PROGRAMS "/all_reduce_perf -b 1K -e 1K -n 1 2>&1", by);
    EXPECT_EQ(ran.code, 0) << ran.text;
    EXPECT_NE(ran.text.find("all_reduce on communicator 'world' uses " + std::string(favourite)), std::string::npos)
        << ran.text;
    EXPECT_EQ(
        parsed(run_program("sluice explain all_reduce --bytes 1K --ranks 2 --json", by).text)["choices"][0]["chosen"],
        favourite);
  }
}

TEST(SluiceTune, AFileThatCannotBeWrittenIsNamed) {
  if (!probe_topology().ok()) GTEST_SKIP() << "built without hwloc";
  const test::ScratchFolder folder;
  const std::string blocked = folder.file("plain", "") + "/x.tuning";
  const auto result =
      run_program("sluice tune --quick --ranks 2 --bytes 64 --links threads --file " + blocked + " 2>&1");
  EXPECT_EQ(result.code, kFailed) << result.text;
  EXPECT_NE(result.text.find("can't make"), std::string::npos) << result.text;
}

TEST(SluiceCheck, TimesEveryAlternative) {
  const std::string by = "SLUICE_TUNING=off";
  const auto result = run_program("sluice explain all_reduce --check --quick --ranks 2 --bytes 64,4K --json", by);
  ASSERT_EQ(result.code, 0) << result.text;
  const json value = parsed(result.text);
  EXPECT_EQ(value["checked"], 2);
  for (const json& one : value["mispredicted"]) EXPECT_GT(one["ratio"], kAsGood);
}

TEST(SluiceCheck, AChoiceThatIsSlowFailsWhenAsked) {
  // Forced to be wrong: each of 8 ranks reads all of a long message from every other.
  const std::string by = "SLUICE_TUNING=off SLUICE_ALGORITHM=all_reduce=one_shot";
  const auto result =
      run_program("sluice explain all_reduce --check --quick --ranks 8 --bytes 1M --fail-above 1.0", by);
  EXPECT_EQ(result.code, kFailed) << result.text;
  EXPECT_NE(result.text.find("one_shot"), std::string::npos) << result.text;
}

TEST(SluiceCheck, TheWorstChoiceComesFirst) {
  const auto made = [](std::size_t bytes) {
    Answer answer;
    answer.bytes = bytes;
    for (const char* name : {"ring", "one_shot"}) {
      Alternative one;
      one.prediction.algorithm = find_algorithm(Collective::all_reduce, name);
      one.prediction.seconds = 1e-6;
      answer.alternatives.push_back(one);
    }
    Alternative refused;
    refused.prediction.algorithm = find_algorithm(Collective::all_reduce, "two_shot");
    refused.refused = "not today";
    answer.alternatives.push_back(refused);
    answer.chosen = answer.alternatives.front().prediction.algorithm;
    return answer;
  };
  const auto checked = compare({made(1), made(2), made(3)}, {{1.04, 1.0}, {2.0, 1.0}, {9.0, 3.0}});
  ASSERT_EQ(checked.size(), 3u);
  const auto wrong = mispredicted(checked);
  ASSERT_EQ(wrong.size(), 2u);
  EXPECT_EQ(wrong[0].bytes, 3u);
  EXPECT_DOUBLE_EQ(wrong[0].ratio(), 3);
  EXPECT_EQ(wrong[0].best->name, "one_shot");
  EXPECT_EQ(wrong[0].expected_seconds, 1e-6);
  EXPECT_EQ(wrong[1].bytes, 2u);
}

TEST(Sweep, MessagesAreWholeElementsForEachRank) {
  EXPECT_EQ(message_bytes(Collective::all_reduce, 4, 8), 8u);
  EXPECT_EQ(message_bytes(Collective::all_reduce, 4, 9), 12u);
  EXPECT_EQ(message_bytes(Collective::all_gather, 4, 8), 16u);
  EXPECT_EQ(message_bytes(Collective::all_gather, 3, 100), 108u);
  EXPECT_EQ(message_bytes(Collective::broadcast, 3, 0), 4u);
}

TEST(Sweep, TheMedianIsTheMiddleOne) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 5}), 5);
}

}  // namespace
}  // namespace sluice::tools
