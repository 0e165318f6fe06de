// AdamW, clipping and the learning rate against the formulas, one element at a time.
#include "layers/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/rng.h"

namespace sluice {
namespace {

// The textbook, for one element.
struct SlowAdamw {
  double theta, m = 0, v = 0;
  void step(double g, double lr, double decay, int t, const AdamwOptions& o) {
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    const double m_hat = m / (1 - std::pow(o.beta1, t));
    const double v_hat = v / (1 - std::pow(o.beta2, t));
    theta -= lr * (m_hat / (std::sqrt(v_hat) + o.epsilon) + decay * theta);
  }
};

Parameters<double> some_parameters() {
  Parameters<double> parameters;
  parameters.begin_stage();
  parameters.add({"matrix", 3, 5, Placement::replicated, 0.5});
  parameters.add({"gain", 1, 5, Placement::replicated, 0, false});
  parameters.add({"experts.1", 2, 5, Placement::by_expert, 0.5});
  parameters.allocate(7);
  return parameters;
}

TEST(Adamw, FollowsTheTextbookElementByElement) {
  Parameters<double> parameters = some_parameters();
  const AdamwOptions options{0.9, 0.95, 1e-8, 0.1};
  Adamw<double> adamw(parameters, options);
  std::vector<SlowAdamw> want;
  for (std::size_t id = 0; id < 3; ++id)
    for (Index i = 0; i < parameters[id].value.rows * 5; ++i) want.push_back({parameters[id].value.data[i]});

  Rng rng(5);
  for (int t = 1; t <= 10; ++t) {
    std::size_t next = 0;
    for (std::size_t id = 0; id < 3; ++id)
      for (Index i = 0; i < parameters[id].value.rows * 5; ++i, ++next) {
        const double g = 2 * rng.uniform() - 1;
        parameters[id].gradient.data[i] = g;
        want[next].step(g * 0.25, 0.01 * t, id == 1 ? 0 : 0.1, t, options);
      }
    adamw.step(0.01 * t, 0.25);
    next = 0;
    for (std::size_t id = 0; id < 3; ++id)
      for (Index i = 0; i < parameters[id].value.rows * 5; ++i, ++next) {
        ASSERT_NEAR(parameters[id].value.data[i], want[next].theta, 1e-14) << "step " << t << " tensor " << id;
        ASSERT_EQ(parameters[id].gradient.data[i], 0);
      }
  }
}

TEST(AdamwBroken, AForgottenBiasCorrectionWouldBeSeen) {
  SlowAdamw right{1.0}, wrong{1.0};
  const AdamwOptions options;
  right.step(0.5, 0.01, 0, 1, options);
  wrong.step(0.5, 0.01, 0, 1000000, options);
  EXPECT_GT(std::abs(right.theta - wrong.theta), 1e-3);
}

TEST(GradientNorm, CountsEveryElementOnce) {
  Parameters<double> parameters = some_parameters();
  double want = 0;
  double next = 1;
  for (std::size_t id = 0; id < 3; ++id)
    for (Index i = 0; i < parameters[id].value.rows * 5; ++i, ++next) {
      parameters[id].gradient.data[i] = next;
      want += next * next;
    }
  Mesh alone;
  EXPECT_NEAR(*gradient_norm(parameters, alone), std::sqrt(want), 1e-12);
}

TEST(ClipFactor, ShrinksWhatIsLongerThanTheLimitAndNothingElse) {
  EXPECT_EQ(clip_factor(0.5, 1), 1);
  EXPECT_NEAR(clip_factor(4, 1), 0.25, 1e-6);
  EXPECT_EQ(clip_factor(1e9, 0), 1);
}

TEST(LearningRate, RisesToItsPeakAndFallsToItsFloor) {
  const LearningRate rate{2.0, 0.1, 4, 104};
  EXPECT_EQ(rate.at(0), 0.5);
  EXPECT_EQ(rate.at(3), 2.0);
  EXPECT_EQ(rate.at(4), 2.0);
  EXPECT_NEAR(rate.at(54), 2.0 * (0.1 + 0.9 * 0.5), 1e-12);
  EXPECT_NEAR(rate.at(104), 0.2, 1e-12);
  EXPECT_NEAR(rate.at(1000), 0.2, 1e-12);
}

}  // namespace
}  // namespace sluice
