// One training run, whatever the layout: losses, gradient norms and weights of dp and ep against those of one rank.
//
// The loss alone would not see a gradient that is scaled wrongly, because Adam's step does not depend on the scale; the
// gradients' norm does.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>

#include "base/rng.h"
#include "layers/data/byte_data.h"
#include "layers/trainer.h"
#include "tests/layers/support/rank_threads.h"

namespace sluice {
namespace {

// Relative. In float32 two experts that are equally probable up to rounding may change places between layouts, and the runs
// then part; the float runs here meet no such pair. In double there is none, and every wrong term shows.
template <typename T>
constexpr double kLossTolerance = std::is_same_v<T, float> ? 1e-5 : 1e-12;
template <typename T>
constexpr double kNormTolerance = std::is_same_v<T, float> ? 1e-4 : 1e-10;

// Words drawn with a skew, so that there is something to learn and experts are used unevenly.
std::vector<std::uint8_t> some_text() {
  const std::vector<std::string> words{"wait", "signal", "combine", "lane", "ring", "tree", "slot", "the", "of", "a"};
  std::string text;
  Rng rng(17);
  while (text.size() < 20000) {
    const std::uint64_t pick = std::min(rng.below(words.size()), rng.below(words.size()));
    text += words[words.size() - 1 - pick] + (rng.chance(0.1) ? ".\n" : " ");
  }
  return {text.begin(), text.end()};
}

struct Recipe {
  ModelShape model;
  Index batch = 8;
  int steps = 20;
  double rate = 3e-3;
  bool level_routers = false;  // before every step: equal probabilities, so the lowest experts take every token

  Recipe() {
    model.sequence = 24;
    model.layers = 2;
    model.hidden = 32;
    model.heads = 4;
    model.kv_heads = 2;
    model.experts = 8;
    model.inner = 24;
    model.shared_inner = 16;
  }
};

struct Outcome {
  std::vector<StepResult> steps;
  std::vector<std::vector<std::int64_t>> counts;       // per block, of the last step
  std::map<std::string, std::vector<double>> weights;  // by logical name, from whichever rank holds it
  std::vector<std::string> replicas_that_differ;       // tensors of which two ranks hold different bits
  double eval_loss = 0;
};

class Collector {
 public:
  explicit Collector(Outcome& outcome) : outcome_(outcome) {}
  template <typename T>
  void take(Model<T>& model, int rank, std::vector<StepResult> steps, double eval_loss) {
    const std::lock_guard guard(mutex_);
    if (rank == 0) {
      outcome_.steps = std::move(steps);
      outcome_.counts = model.expert_counts();
      outcome_.eval_loss = eval_loss;
    }
    const Parameters<T>& parameters = model.parameters();
    for (std::size_t id = 0; id < parameters.tensors().size(); ++id) {
      const View<T> value = parameters[id].value;
      const std::string& name = parameters.tensors()[id].spec.name;
      std::vector<double> here(value.data, value.data + value.rows * value.columns);
      const auto [there, first] = outcome_.weights.emplace(name, here);
      if (!first && std::memcmp(there->second.data(), here.data(), here.size() * sizeof(double)) != 0)
        outcome_.replicas_that_differ.push_back(name);
    }
  }

 private:
  Outcome& outcome_;
  std::mutex mutex_;  // guards outcome_
};

template <typename T>
void level_routers(const Parameters<T>& parameters) {
  for (std::size_t id = 0; id < parameters.tensors().size(); ++id)
    if (parameters.tensors()[id].spec.name.ends_with(".router")) {
      const View<T> value = parameters[id].value;
      std::fill_n(value.data, value.rows * value.columns, T{0});
    }
}

template <typename T>
Status train_rank(Communicator world, MeshShape shape, const Recipe& run, const ByteData& data, Collector& collector) {
  SLUICE_TRY_ASSIGN(Mesh mesh, Mesh::create(world, shape));
  Model<T> model(run.model, mesh, 3);
  Trainer<T> trainer(model, mesh, {});
  std::vector<StepResult> steps;
  for (int step = 0; step < run.steps; ++step) {
    if (run.level_routers) level_routers(model.parameters());
    const Batch batch = data.batch(static_cast<std::uint64_t>(step * run.batch), run.batch, mesh.dp_rank(), shape.dp);
    SLUICE_TRY_ASSIGN(const StepResult result, trainer.step(batch, run.rate));
    steps.push_back(result);
  }
  SLUICE_TRY_ASSIGN(const double eval_loss, trainer.evaluate(data.held_out(7, mesh.dp_rank(), shape.dp)));
  collector.take(model, mesh.dp_rank(), std::move(steps), eval_loss);
  return mesh.close();
}

template <typename T>
Outcome train(MeshShape shape, const Recipe& run) {
  use_one_blas_thread();
  const auto text = some_text();
  const auto data = ByteData::create(text, {run.model.sequence, 0.05, 5});
  Outcome outcome;
  Collector collector(outcome);
  test::run_ranks(shape.dp, [&](Communicator world) { return train_rank<T>(world, shape, run, *data, collector); });
  return outcome;
}

double difference(double a, double b) { return std::abs(a - b) / std::max(std::abs(a), 1e-12); }

// Compares a layout with one rank, prints the largest differences.
template <typename T>
void expect_same(MeshShape shape, const Recipe& run, const Outcome& want) {
  const Outcome got = train<T>(shape, run);
  ASSERT_EQ(got.steps.size(), want.steps.size());
  double loss = difference(want.eval_loss, got.eval_loss), norm = 0, balance = 0;
  for (std::size_t i = 0; i < want.steps.size(); ++i) {
    loss = std::max(loss, difference(want.steps[i].loss, got.steps[i].loss));
    norm = std::max(norm, difference(want.steps[i].gradient_norm, got.steps[i].gradient_norm));
    balance = std::max(balance, difference(want.steps[i].balance_loss, got.steps[i].balance_loss));
    EXPECT_EQ(got.steps[i].tokens, want.steps[i].tokens);
  }
  std::printf("  %s dp %d ep %d: loss %.1e, gradient norm %.1e, balance loss %.1e (largest relative differences)\n",
              std::is_same_v<T, float> ? "float" : "double", shape.dp, shape.ep, loss, norm, balance);
  EXPECT_LT(loss, kLossTolerance<T>);
  EXPECT_LT(norm, kNormTolerance<T>);
  EXPECT_LT(balance, kNormTolerance<T>);
  EXPECT_EQ(got.replicas_that_differ, std::vector<std::string>());
  EXPECT_EQ(got.weights.size(), want.weights.size());
}

template <typename T>
void expect_twenty_steps_alike() {
  const Recipe run;
  const Outcome want = train<T>({1, 1}, run);
  EXPECT_LT(want.steps.back().loss, 0.75 * want.steps.front().loss);  // it does learn
  for (const MeshShape shape : {MeshShape{2, 1}, {4, 1}, {2, 2}, {4, 4}, {4, 2}}) expect_same<T>(shape, run, want);
}

TEST(Layout, LossesOfTwentyStepsDoNotDependOnIt) { expect_twenty_steps_alike<float>(); }

TEST(Layout, InDoublePrecisionHardlyABitDependsOnIt) { expect_twenty_steps_alike<double>(); }

TEST(Layout, ExpertsNeedNotDivideByTheirRanks) {
  for (const int experts : {5, 3}) {  // of 3, a rank of 4 owns none
    Recipe run;
    run.model.experts = experts;
    const Outcome want = train<double>({1, 1}, run);
    for (const MeshShape shape : {MeshShape{2, 2}, {4, 4}, {3, 3}}) expect_same<double>(shape, run, want);
  }
}

TEST(Layout, ABatchNeedNotDivideByTheRanks) {
  Recipe run;
  run.batch = 3;  // of 4 ranks, one has no sequence at all
  run.steps = 8;
  const Outcome want = train<double>({1, 1}, run);
  for (const MeshShape shape : {MeshShape{2, 1}, {4, 2}, {4, 4}}) expect_same<double>(shape, run, want);
}

TEST(Layout, AllTokensToOneExpertAndNoneToTheOthersIsOrdinary) {
  Recipe run;
  run.model.top_k = 1;
  run.steps = 6;
  run.level_routers = true;
  const Outcome want = train<double>({1, 1}, run);
  const std::int64_t tokens = want.steps.back().tokens;
  EXPECT_EQ(want.counts, (std::vector<std::vector<std::int64_t>>(2, {tokens, 0, 0, 0, 0, 0, 0, 0})));
  for (const MeshShape shape : {MeshShape{2, 2}, {4, 4}, {4, 2}}) expect_same<double>(shape, run, want);
}

TEST(Layout, ExpertsWithoutATokenDoNotDisturbTheOthers) {
  Recipe run;
  run.steps = 6;
  run.level_routers = true;  // experts 0 and 1 take all, 2 to 7 none
  const Outcome want = train<double>({1, 1}, run);
  EXPECT_EQ(want.counts[0][2], 0);
  for (const MeshShape shape : {MeshShape{2, 2}, {4, 4}}) expect_same<double>(shape, run, want);
}

TEST(LayoutBroken, AnExpertGradientScaledTwiceWouldShowInTheNorm) {
  const auto text = some_text();
  const Recipe run;
  const auto data = ByteData::create(text, {run.model.sequence, 0.05, 5});
  Mesh mesh;
  Model<float> model(run.model, mesh, 3);
  const Batch batch = data->batch(0, run.batch, 0, 1);
  ASSERT_TRUE(model.forward(batch, true).ok());
  ASSERT_TRUE(model.backward(batch, batch.counted(), [](int) {}).ok());
  const double right = *gradient_norm(model.parameters(), mesh);
  const View<float> experts = model.parameters().gradients(Placement::by_expert);
  for (Index i = 0; i < experts.columns; ++i) experts.data[i] *= 2;
  EXPECT_GT(difference(right, *gradient_norm(model.parameters(), mesh)), 10 * kNormTolerance<float>);
}

TEST(LayoutBroken, ARankThatTakesItsNeighboursPartWouldShowInTheLoss) {
  const auto text = some_text();
  const Recipe run;
  const auto data = ByteData::create(text, {run.model.sequence, 0.05, 5});
  Mesh mesh;
  Model<float> model(run.model, mesh, 3);
  const auto loss = [&](int first_part, int second_part) {
    return *model.forward(data->batch(0, run.batch, first_part, 2), false) +
           *model.forward(data->batch(0, run.batch, second_part, 2), false);
  };
  EXPECT_GT(difference(loss(0, 1), loss(0, 0)), 10 * kLossTolerance<float>);
  EXPECT_LT(difference(loss(0, 1), *model.forward(data->batch(0, run.batch, 0, 1), false)), kLossTolerance<float>);
}

TEST(Mesh, RefusesAxesThatDoNotMakeTheWorld) {
  EXPECT_TRUE(check_mesh({4, 2}, 4).ok());
  EXPECT_EQ(check_mesh({2, 1}, 4).text(),
            "mesh: dp 2 does not make the world of 4 ranks (world = dp): use dp 4 or start 2 ranks");
  EXPECT_EQ(check_mesh({4, 3}, 4).text(), "mesh: ep 3 must divide dp 4 (experts are carved from dp)");
  EXPECT_EQ(check_mesh({0, 1}, 1).code(), Code::invalid_argument);
  EXPECT_EQ(check_mesh({1, 0}, 1).code(), Code::invalid_argument);
}

TEST(Mesh, GroupsAreCarvedFromDpWithExpertsSideBySide) {
  test::run_ranks(4, [](Communicator world) -> Status {
    SLUICE_TRY_ASSIGN(Mesh mesh, Mesh::create(world, {4, 2}));
    const int rank = world.rank();
    EXPECT_EQ(mesh.dp().ranks(), 4);
    EXPECT_EQ(mesh.dp().rank(), rank);
    EXPECT_EQ(mesh.ep().ranks(), 2);
    EXPECT_EQ(mesh.ep().rank(), rank % 2);
    EXPECT_EQ(mesh.ep().world_rank(0), rank / 2 * 2);
    EXPECT_EQ(mesh.edp().ranks(), 2);
    EXPECT_EQ(mesh.edp().world_rank(0), rank % 2);
    EXPECT_EQ(mesh.ep().lane().name, "ep");
    EXPECT_EQ(mesh.ep().lane().priority, Priority::urgent);
    EXPECT_EQ(mesh.dp().lane(), mesh.edp().lane());
    EXPECT_EQ(mesh.dp().lane().priority, Priority::bulk);
    return mesh.close();
  });
}

}  // namespace
}  // namespace sluice
