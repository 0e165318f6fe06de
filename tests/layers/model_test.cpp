// The whole model's gradient against finite differences, stages in order, and the shapes it refuses.
#include "layers/model.h"

#include <gtest/gtest.h>

#include "tests/layers/support/finite_difference.h"

namespace sluice {
namespace {

ModelShape small_shape() {
  ModelShape shape;
  shape.vocabulary = 11;
  shape.sequence = 6;
  shape.layers = 2;
  shape.hidden = 8;
  shape.heads = 2;
  shape.kv_heads = 1;
  shape.experts = 4;
  shape.top_k = 2;
  shape.inner = 5;
  shape.shared_inner = 3;
  shape.balance = 0.3;
  return shape;
}

Batch small_batch() {
  Batch batch;
  batch.sequences = 3;
  batch.length = 6;
  Rng rng(5);
  for (Index i = 0; i < batch.tokens(); ++i) {
    batch.inputs.push_back(static_cast<std::int32_t>(rng.below(11)));
    batch.targets.push_back(i % 7 == 3 ? kNotCounted : static_cast<std::int32_t>(rng.below(11)));
  }
  return batch;
}

struct ModelCase {
  Mesh mesh;
  Model<double> model{small_shape(), mesh, 3};
  Batch batch = small_batch();
  std::vector<int> stages;

  double loss() {
    const auto sum = model.forward(batch, true);
    return *sum / static_cast<double>(batch.counted()) + model.balance_loss(batch.counted());
  }
  void backward() {
    loss();
    ASSERT_TRUE(model.backward(batch, batch.counted(), [this](int stage) { stages.push_back(stage); }).ok());
  }
};

TEST(ModelBackward, AgreesWithFiniteDifferencesInEveryTensor) {
  ModelCase c;
  c.backward();
  for (std::size_t id = 0; id < c.model.parameters().tensors().size(); ++id) {
    const Weight<double> weight = c.model.parameters()[id];
    const std::string& name = c.model.parameters().tensors()[id].spec.name;
    EXPECT_LT(test::gradient_error(name, weight.value, weight.gradient, [&] { return c.loss(); }),
              test::kGradientTolerance);
  }
}

TEST(ModelBackwardBroken, AGradientDividedByAnotherCountIsSeen) {
  ModelCase c;
  c.loss();
  ASSERT_TRUE(c.model.backward(c.batch, c.batch.counted() + 1, [](int) {}).ok());
  const Weight<double> weight = c.model.parameters()[0];
  EXPECT_GT(test::gradient_error("embedding, broken", weight.value, weight.gradient, [&] { return c.loss(); }),
            100 * test::kGradientTolerance);
}

TEST(ModelBackward, FinishesStagesLastFirst) {
  ModelCase c;
  c.backward();
  EXPECT_EQ(c.stages, (std::vector<int>{3, 2, 1, 0}));
}

TEST(ModelBackward, AddsToGradientsThatAreThere) {
  ModelCase once;
  once.backward();
  ModelCase twice;
  twice.backward();
  twice.backward();
  for (const Placement placement : {Placement::replicated, Placement::by_expert}) {
    const View<double> one = once.model.parameters().gradients(placement);
    const View<double> two = twice.model.parameters().gradients(placement);
    for (Index i = 0; i < one.columns; ++i) ASSERT_NEAR(two.data[i], 2 * one.data[i], 1e-12) << "element " << i;
  }
}

TEST(Model, AnEmptyBatchHasNoLossAndNoGradient) {
  ModelCase c;
  c.batch.sequences = 0;
  c.batch.inputs.clear();
  c.batch.targets.clear();
  EXPECT_EQ(*c.model.forward(c.batch, true), 0);
  ASSERT_TRUE(c.model.backward(c.batch, 1, [](int) {}).ok());
  for (const Placement placement : {Placement::replicated, Placement::by_expert}) {
    const View<double> gradient = c.model.parameters().gradients(placement);
    for (Index i = 0; i < gradient.columns; ++i) ASSERT_EQ(gradient.data[i], 0);
  }
}

TEST(Model, ItsStagesCoverEveryParameterOnce) {
  ModelCase c;
  const Parameters<double>& parameters = c.model.parameters();
  Index elements = 0;
  for (const auto& tensor : parameters.tensors()) elements += tensor.spec.rows * tensor.spec.columns;
  for (const Placement placement : {Placement::replicated, Placement::by_expert}) {
    Index next = 0;
    for (int stage = 0; stage < parameters.stages(); ++stage) {
      EXPECT_EQ(parameters.stage(stage, placement).first, next);
      next += parameters.stage(stage, placement).count;
    }
    EXPECT_EQ(next, parameters.count(placement));
    elements -= next;
  }
  EXPECT_EQ(elements, 0);
}

TEST(Model, LastTokensLogitsAreThoseOfTheWholeForward) {
  ModelCase c;
  const auto last = c.model.next_token_logits(c.batch);
  ASSERT_TRUE(last.ok());
  // The loss of one target at the end, computed from these logits, is what the model says it is.
  std::fill(c.batch.targets.begin(), c.batch.targets.end(), kNotCounted);
  c.batch.targets.back() = 4;
  const double* z = last->row(2);
  double sum = 0;
  for (int j = 0; j < 11; ++j) sum += std::exp(z[j]);
  const double want = std::log(sum) - z[4];
  EXPECT_NEAR(*c.model.forward(c.batch, false), want, 1e-12);
}

TEST(ModelShapeCheck, NamesTheFieldTheValueAndWhatItMustBe) {
  EXPECT_TRUE(check_shape(ModelShape{}).ok());
  const auto text = [](auto change) {
    ModelShape shape;
    change(shape);
    const Status status = check_shape(shape);
    EXPECT_EQ(status.code(), Code::invalid_argument);
    return status.text();
  };
  EXPECT_EQ(text([](ModelShape& s) { s.top_k = 9; }),
            "model: top-k is 9, it must be between 1 and the number of experts");
  EXPECT_EQ(text([](ModelShape& s) { s.kv_heads = 3; }), "model: kv-heads is 3, it must be a divisor of heads");
  EXPECT_NE(text([](ModelShape& s) { s.heads = 3; }).find("heads is 3"), std::string::npos);
  EXPECT_NE(text([](ModelShape& s) { s.layers = 0; }).find("layers is 0"), std::string::npos);
  EXPECT_NE(text([](ModelShape& s) { s.shared_inner = -1; }).find("shared-inner is -1"), std::string::npos);
}

}  // namespace
}  // namespace sluice
