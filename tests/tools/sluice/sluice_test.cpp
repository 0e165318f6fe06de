// `sluice` as a user meets it: what it prints, that its JSON is JSON, and that bad input ends with a message and a code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "comm/algorithms/algorithms.h"
#include "tests/tools/run_program.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/proofs.h"
#include "tools/sluice/topo_views.h"
#include "transport/topology/topology.h"

namespace sluice::tools {
namespace {

using nlohmann::json;
using test::parsed;
using test::run_program;

// A file in a folder that goes away with it.
class ScratchFile {
 public:
  explicit ScratchFile(const std::string& text = "")
      : path_(std::filesystem::temp_directory_path() / ("sluice_test_" + std::to_string(::getpid()) + ".txt")) {
    std::ofstream(path_) << text;
  }
  ~ScratchFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }
  std::string read() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::filesystem::path path_;
};

TEST(Sluice, SaysItsVersion) {
  const auto result = run_program("sluice --version");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(result.text.starts_with("sluice ")) << result.text;
}

TEST(Sluice, WhatItDoesNotKnowIsRefused) {
  for (const auto& [command, says] : std::initializer_list<std::pair<const char*, const char*>>{
           {"sluice 2>&1", "a command is missing"},
           {"sluice tune extra 2>&1", "extra"},
           {"sluice frobnicate 2>&1", "'frobnicate' is not a command"},
           {"sluice --frobnicate 2>&1", "--frobnicate"},
           {"sluice topo --frobnicate 2>&1", "--frobnicate"},
           {"sluice topo extra 2>&1", "extra"},
           {"sluice verify 2>&1", "--all"},
           {"sluice verify --all --together 2>&1", "--together needs files"},
           {"sluice verify --all --ranks 5..2 2>&1", "--ranks is '5..2'"},
           {"sluice verify --all --ranks many 2>&1", "--ranks is 'many'"},
           {"sluice verify --all --collective magic 2>&1", "'magic'"},
           {"sluice verify --all --algorithm magic --ranks 2 2>&1", "no algorithm fits"},
           {"sluice explain magic 2>&1", "'magic' is no collective"},
           {"sluice explain --bytes many 2>&1", "many"},
           {"sluice explain --link radio 2>&1", "--link is 'radio'"},
           {"sluice explain --fail-above 2 2>&1", "--fail-above needs --check"},
           {"sluice explain --check --ranks 1 2>&1", "--check needs --ranks of 2 or more"},
           {"sluice tune --ranks 1 2>&1", "--ranks is '1'"},
           {"sluice tune --ranks two 2>&1", "--ranks is 'two'"},
           {"sluice tune --bytes many 2>&1", "--bytes"},
           {"sluice tune --links tcp,radio 2>&1", "--links is 'tcp,radio'"},
           {"sluice run -n 0 true 2>&1", "-n"},
           {"sluice run -n 2 2>&1", "a program is missing"},
           {"sluice topo --file /nowhere 2>&1", "/nowhere"},
       }) {
    const auto result = run_program(command);
    EXPECT_EQ(result.code, kUsage) << command << "\n" << result.text;
    EXPECT_NE(result.text.find(says), std::string::npos) << command << "\n" << result.text;
  }
}

// ---- run

TEST(SluiceRun, EveryRankLearnsItsPlace) {
  const auto result =
      run_program("sluice run -n 3 sh -c 'echo $SLUICE_RANK of $SLUICE_RANKS, ${#SLUICE_UNIQUE_ID} | cat'");
  EXPECT_EQ(result.code, 0);
  for (const char* line : {"0 of 3, 256", "1 of 3, 256", "2 of 3, 256"})
    EXPECT_NE(result.text.find(line), std::string::npos) << result.text;
}

TEST(SluiceRun, RanksJoinAndCommunicate) {
  const auto result = run_program("sluice run -n 3 " SLUICE_PROGRAMS "/all_reduce_perf -b 0 -e 1K -f 8 -n 2");
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("Rank  2"), std::string::npos) << result.text;
}

TEST(SluiceRun, TheFirstFailureDecides) {
  const auto result = run_program("sluice run -n 3 sh -c '[ $SLUICE_RANK = 1 ] && exit 3; exit 0' 2>&1");
  EXPECT_EQ(result.code, 3);
  EXPECT_NE(result.text.find("rank 1 failed"), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("exit code 3"), std::string::npos) << result.text;
}

TEST(SluiceRun, AKilledRankIsNamed) {
  const auto result = run_program("sluice run --json -n 2 sh -c '[ $SLUICE_RANK = 1 ] && kill -9 $$; exit 0'");
  EXPECT_EQ(result.code, 137);
  const json value = parsed(result.text);
  EXPECT_EQ(value["failed_rank"], 1);
  EXPECT_NE(value["what"].get<std::string>().find("signal 9"), std::string::npos);
}

TEST(SluiceRun, AProgramThatDoesNotExistIsSaidOnce) {
  const auto result = run_program("sluice run -n 3 /nowhere/program 2>&1");
  EXPECT_EQ(result.code, 127);
  const std::string says = "'/nowhere/program' can't be started";
  const auto first = result.text.find(says);
  ASSERT_NE(first, std::string::npos) << result.text;
  EXPECT_EQ(result.text.find(says, first + 1), std::string::npos) << result.text;
}

TEST(SluiceRun, OptionsAfterTheProgramAreTheProgramsOwn) {
  const auto result = run_program("sluice run -n 1 echo -n --json --help");
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.text, "--json --help");
}

// ---- topo

TEST(SluiceTopo, TextCanBeRecordedAndShown) {
  const auto recorded = run_program("sluice topo --text");
  if (recorded.code != 0) GTEST_SKIP() << "built without hwloc";
  const ScratchFile file(recorded.text);
  EXPECT_EQ(run_program("sluice topo --text --file " + file.path()).text, recorded.text);
  const json value = parsed(run_program("sluice topo --json --file " + file.path()).text);
  EXPECT_EQ(value["kind"], "machine");
}

TEST(SluiceTopo, DrawsBoxesThatLieInTheirParents) {
  const auto topology =
      parse_topology("sluice topology 1\nmachine 0 name \"a < b & c\"\n  package 0\n    core 0\n      thread 0\n");
  ASSERT_TRUE(topology.ok());
  const std::string svg = svg_view(*topology);
  EXPECT_TRUE(svg.starts_with("<svg "));
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos) << svg;
  std::size_t boxes = 0;
  for (auto at = svg.find("<rect"); at != std::string::npos; at = svg.find("<rect", at + 1)) ++boxes;
  EXPECT_EQ(boxes, 4u);
  const ScratchFile file;
  const auto result =
      run_program("sluice topo --svg " + file.path() + " --file " SLUICE_RECORDED_MACHINES "/all-kinds.txt");
  EXPECT_EQ(result.code, 0);
  EXPECT_TRUE(file.read().ends_with("</svg>\n"));
}

TEST(SluiceTopo, TreeShowsEveryNode) {
  const auto result = run_program("sluice topo --file " SLUICE_RECORDED_MACHINES "/all-kinds.txt");
  for (const char* one : {"ens1np0 10.1.0.7/16", "accelerator \"0\"", "L3 cache 32 MiB", "thread 3 (cpu 3)", "nvme0n1"})
    EXPECT_NE(result.text.find(one), std::string::npos) << one << "\n" << result.text;
}

// ---- verify

TEST(SluiceVerify, ProvesTheWholeListAndCounts) {
  const auto result = run_program("sluice verify --all --ranks 1..5 --json");
  EXPECT_EQ(result.code, 0) << result.text;
  const json value = parsed(result.text);
  EXPECT_EQ(value["faults"].size(), 0u);
  EXPECT_EQ(value["algorithms"].size(), all_algorithms().size());
  EXPECT_EQ(value["totals"]["schedules_proved"], proof_tasks({1, 5}, "", "").size());
}

TEST(SluiceVerify, AFileThatIsRightAndOneThatIsNot) {
  const Algorithm* ring = find_algorithm(Collective::all_reduce, "ring");
  ASSERT_NE(ring, nullptr);
  auto schedule =
      ring->build({.collective = Collective::all_reduce, .ranks = 4, .root = 0, .order = Order::fast, .only = {}});
  ASSERT_TRUE(schedule.ok());
  {
    const ScratchFile file(print(*schedule));
    const auto result = run_program("sluice verify " + file.path());
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_NE(result.text.find("proved"), std::string::npos);
  }
  std::string text = print(*schedule);
  const auto last = text.rfind('\n', text.size() - 2);
  const ScratchFile broken(text.substr(0, last + 1));  // the last step is missing
  const auto result = run_program("sluice verify --json " + broken.path());
  EXPECT_EQ(result.code, kFailed) << result.text;
  EXPECT_EQ(parsed(result.text)[0]["proved"], false);
  EXPECT_EQ(run_program("sluice verify /nowhere/file").code, kFailed);
}

TEST(SluiceVerify, RanksAreARangeOrOneNumber) {
  EXPECT_EQ(parse_rank_range("7")->first, 7);
  EXPECT_EQ(parse_rank_range("7")->last, 7);
  EXPECT_EQ(parse_rank_range("2..64")->last, 64);
  for (const char* wrong : {"", "0", "1..", "..4", "4..2", "1...4", "x", "1..99999"})
    EXPECT_FALSE(parse_rank_range(wrong).ok()) << wrong;
}

Result<Schedule> build_without_a_step(const AlgorithmRequest& request) {
  auto whole = find_algorithm(Collective::all_reduce, "ring")->build(request);
  if (whole.ok() && !whole->steps.empty()) whole->steps.pop_back();
  return whole;
}

// The one-rank reading forgets a step that the whole schedule has.
Result<Schedule> build_forgetful(const AlgorithmRequest& request) {
  auto built = find_algorithm(Collective::all_reduce, "ring")->build(request);
  if (built.ok() && request.only && !built->steps.empty()) built->steps.pop_back();
  return built;
}

TEST(SluiceVerifyBroken, ABuilderThatIsWrongIsRefused) {
  Algorithm broken = *find_algorithm(Collective::all_reduce, "ring");
  const ProofTask task{&broken, 4, 0, Order::fast};
  EXPECT_TRUE(prove(task, true).ok());
  broken.build = build_without_a_step;
  EXPECT_FALSE(prove(task, true).ok());
  broken.build = build_forgetful;
  const auto result = prove(task, true);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().text.find("one-rank reading"), std::string::npos) << result.error().text;
}

TEST(SluiceVerifyBroken, AClaimOfTheCanonicalOrderMustBeTrue) {
  const Algorithm ring = *find_algorithm(Collective::all_reduce, "ring");
  ASSERT_FALSE(ring.supports_canonical(5));
  EXPECT_FALSE(prove({&ring, 5, 0, Order::canonical}, false).ok());
}

// ---- explain

TEST(SluiceExplain, NamesAChoiceItsCostAndEverySetting) {
  const auto result = run_program("sluice explain all_reduce --bytes 1M --ranks 8 --json", "SLUICE_SLOTS=16");
  ASSERT_EQ(result.code, 0) << result.text;
  const json value = parsed(result.text);
  ASSERT_EQ(value["choices"].size(), 1u);
  const json& choice = value["choices"][0];
  EXPECT_EQ(choice["chosen"], choice["alternatives"][0]["algorithm"]);
  EXPECT_GT(choice["alternatives"].size(), 3u);
  EXPECT_EQ(value["settings"].size(), kSettings);
  EXPECT_EQ(value["memory"]["rings_most"], 14);
  EXPECT_GT(value["memory"]["bytes_most"], 14 * 16 * 128 * 1024);
  for (const json& setting : value["settings"])
    if (setting["name"] == "slots") {
      EXPECT_EQ(setting["value"], "16");
      EXPECT_EQ(setting["origin"], "environment");
    }
}

TEST(SluiceExplain, AForcedChoiceSaysSo) {
  const auto result = run_program("sluice explain all_reduce --bytes 1M", "SLUICE_ALGORITHM=ring");
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.text.find("forced by the setting algorithm (environment)"), std::string::npos) << result.text;
}

TEST(SluiceExplain, AVariableThatDoesNotExistIsRefused) {
  const auto result = run_program("sluice explain 2>&1", "SLUICE_SLOTZ=16");
  EXPECT_EQ(result.code, kUsage);
  EXPECT_NE(result.text.find("SLUICE_SLOTZ"), std::string::npos) << result.text;
}

}  // namespace
}  // namespace sluice::tools
