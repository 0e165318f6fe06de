// The flags of train_moe, and whole small runs of it: metrics, sample, the same numbers again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "examples/train_moe/generate.h"
#include "examples/train_moe/options.h"
#include "examples/train_moe/run.h"
#include "tools/launch/local_ranks.h"

namespace sluice::examples {
namespace {

struct Said {
  Parsed parsed;
  std::string text;  // on standard error
};

Said parse(std::vector<std::string> words) {
  words.insert(words.begin(), "train_moe");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  testing::internal::CaptureStderr();
  Said said{parse_options(static_cast<int>(argv.size()), argv.data()), ""};
  said.text = testing::internal::GetCapturedStderr();
  return said;
}

TEST(TrainMoeOptions, TakesEveryFlagOfTheDesign) {
  const Said said = parse({"-g",      "4",         "--steps",  "7",   "--seed", "3", "--dp",      "4", "--ep",   "2",
                           "--tp",    "1",         "--cp",     "1",   "--pp",   "1", "--etp",     "1", "--zero", "0",
                           "--order", "canonical", "--device", "cpu", "--data", "d", "--metrics", "m"});
  ASSERT_TRUE(said.parsed.options) << said.text;
  const TrainMoeOptions& o = *said.parsed.options;
  EXPECT_EQ(o.local_ranks, 4);
  EXPECT_EQ(o.steps, 7);
  EXPECT_EQ(o.rate.steps, 7);
  EXPECT_EQ(o.seed, 3u);
  EXPECT_EQ(o.mesh.dp, 4);
  EXPECT_EQ(o.mesh.ep, 2);
  EXPECT_EQ(o.train.order, Order::canonical);
  EXPECT_EQ(o.data, "d");
  EXPECT_EQ(o.metrics, "m");
}

TEST(TrainMoeOptions, RefusesAxesThatAreNotBuiltByName) {
  const std::vector<std::vector<std::string>> wishes{
      {"--tp", "2"}, {"--cp", "2"},   {"--pp", "4"},        {"--etp", "2"},
      {"--sp"},      {"--zero", "3"}, {"--device", "cuda"}, {"--checkpoint", "dir"}};
  for (const auto& wish : wishes) {
    const Said said = parse(wish);
    EXPECT_FALSE(said.parsed.options);
    EXPECT_NE(said.parsed.exit_code, 0);
    EXPECT_NE(said.text.find(wish[0]), std::string::npos) << said.text;
    EXPECT_NE(said.text.find("not built yet"), std::string::npos) << said.text;
  }
}

TEST(TrainMoeOptions, RefusesWhatIsNoNumberOrOutOfRange) {
  const std::vector<std::vector<std::string>> wishes{
      {"--steps", "many"}, {"--steps", "0"}, {"--dp", "0"},    {"--ep", "-1"},      {"-g", "0"},
      {"--order", "some"}, {"--zero", "4"},  {"--lr", "x"},    {"--held-out", "1"}, {"--batch"},
      {"--unknown", "1"},  {"stray"},        {"--top-k", "9"}, {"--heads", "3"}};
  for (const auto& wish : wishes) {
    const Said said = parse(wish);
    EXPECT_FALSE(said.parsed.options) << wish[0];
    EXPECT_EQ(said.parsed.exit_code, 2) << wish[0];
    EXPECT_FALSE(said.text.empty()) << wish[0];
  }
}

TrainMoeOptions small_options() {
  TrainMoeOptions options;
  options.model.sequence = 16;
  options.model.layers = 1;
  options.model.hidden = 16;
  options.model.heads = 2;
  options.model.kv_heads = 1;
  options.model.experts = 4;
  options.model.inner = 8;
  options.steps = options.rate.steps = 6;
  options.batch = 4;
  options.eval_every = 3;
  options.eval_sequences = 2;
  options.sample_bytes = 20;
  options.metrics = testing::TempDir() + "sluice_metrics_" + std::to_string(getpid());
  return options;
}

std::vector<std::uint8_t> small_text() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the lane is a promise; ";
  return {text.begin(), text.end()};
}

struct RunOutput {
  std::vector<nlohmann::json> metrics;
  std::string text;
};

RunOutput run(int ranks, const TrainMoeOptions& options) {
  const auto text = small_text();
  const auto id = make_local_unique_id();
  testing::internal::CaptureStdout();
  tools::run_threads(ranks, [&](int rank) {
    auto runtime = Runtime::join(*id, rank, ranks, {});
    Status status = runtime.status();
    if (status.ok()) status = run_training(**runtime, text, options);
    EXPECT_TRUE(status.ok()) << "rank " << rank << ": " << status.text();
    return 0;
  });
  RunOutput output;
  output.text = testing::internal::GetCapturedStdout();
  std::ifstream file(options.metrics);
  for (std::string line; std::getline(file, line);) output.metrics.push_back(nlohmann::json::parse(line));
  std::remove(options.metrics.c_str());
  return output;
}

TEST(TrainMoe, WritesOneObjectAStepWithWhatWasMeasured) {
  const RunOutput output = run(1, small_options());
  ASSERT_EQ(output.metrics.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto& line = output.metrics[i];
    EXPECT_EQ(line["step"], i + 1);
    EXPECT_GT(line["loss"], 0);
    EXPECT_EQ(line.contains("eval_loss"), i == 2 || i == 5);
    EXPECT_EQ(line["tokens"], 64);
    EXPECT_GT(line["tokens_per_second"], 0);
    EXPECT_TRUE(line["lane_seconds"].contains("dp"));
    EXPECT_TRUE(line["lane_seconds"].contains("ep"));
  }
  EXPECT_NE(output.text.find("held-out loss"), std::string::npos);
  EXPECT_NE(output.text.find("a sample"), std::string::npos);
}

TEST(TrainMoe, SaysThatAMetricsFileCannotBeWrittenBeforeItTrains) {
  TrainMoeOptions options = small_options();
  options.metrics = "/nowhere/metrics";
  const auto text = small_text();
  auto runtime = Runtime::alone({});
  ASSERT_TRUE(runtime.ok());
  const Status status = run_training(**runtime, text, options);
  EXPECT_EQ(status.code(), Code::system);
  EXPECT_NE(status.text().find("/nowhere/metrics"), std::string::npos) << status.text();
}

TEST(TrainMoe, GivesTheSameLossesAndSampleAgainAndOnFourRanks) {
  TrainMoeOptions options = small_options();
  const RunOutput once = run(1, options), again = run(1, options);
  options.mesh.ep = 2;
  const RunOutput four = run(4, options);
  ASSERT_EQ(four.metrics.size(), once.metrics.size());
  for (std::size_t i = 0; i < once.metrics.size(); ++i) {
    EXPECT_EQ(once.metrics[i]["loss"], again.metrics[i]["loss"]);
    EXPECT_NEAR(four.metrics[i]["loss"], once.metrics[i]["loss"], 1e-5 * double(once.metrics[i]["loss"]));
    EXPECT_GT(four.metrics[i]["lane_seconds"]["dp"], 0);
    EXPECT_GT(four.metrics[i]["lane_seconds"]["ep"], 0);
  }
  const auto sample = [](const RunOutput& output) { return output.text.substr(output.text.find("--- a sample")); };
  EXPECT_EQ(sample(once), sample(again));
}

TEST(TrainMoe, AMeshThatDoesNotFitIsSaidByEveryRank) {
  TrainMoeOptions options = small_options();
  options.mesh = {3, 1};
  const auto text = small_text();
  auto runtime = Runtime::alone({});
  ASSERT_TRUE(runtime.ok());
  const Status status = run_training(**runtime, text, options);
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_NE(status.text().find("dp 3"), std::string::npos) << status.text();
}

TEST(Generate, IsAFunctionOfWeightsAndSeed) {
  Mesh alone;
  Model<float> model(small_options().model, alone, 1);
  const GenerateOptions one{"the ", 30, 1.0, 5}, other{"the ", 30, 1.0, 6};
  EXPECT_EQ(*generate(model, 0, one), *generate(model, 0, one));
  EXPECT_NE(*generate(model, 0, one), *generate(model, 0, other));
  EXPECT_EQ(generate(model, 0, one)->size(), 30u);
  EXPECT_EQ(*generate(model, 1, one), "");
}

TEST(Printable, HidesWhatATerminalShouldNotSee) { EXPECT_EQ(printable("a\x1b[2J\n\xff~"), "a?[2J\n?~"); }

}  // namespace
}  // namespace sluice::examples
