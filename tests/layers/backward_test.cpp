// Every layer's backward against finite differences of its forward, in double. Each check is then shown to see a fault.
#include <gtest/gtest.h>

#include "layers/attention.h"
#include "layers/batch.h"
#include "layers/embedding.h"
#include "layers/moe.h"
#include "layers/rms_norm.h"
#include "layers/rotary.h"
#include "layers/swiglu.h"
#include "tests/layers/support/finite_difference.h"

namespace sluice {
namespace {

using test::gradient_error;
using test::inner_product;
using test::kGradientTolerance;
using test::OwnWeight;
using test::random_matrix;

// A fault that a test plants in a gradient that was right.
void double_one(View<double> gradient) {
  double* most = gradient.data;
  for (Index i = 0; i < gradient.rows; ++i)
    for (Index j = 0; j < gradient.columns; ++j)
      if (std::abs(gradient.row(i)[j]) > std::abs(*most)) most = &gradient.row(i)[j];
  *most *= 1.001;
}

Matrix<double> zeros(Index rows, Index columns) {
  Matrix<double> matrix(rows, columns);
  matrix.fill(0);
  return matrix;
}

struct NormCase {
  OwnWeight gain{1, 6, 1};
  Matrix<double> x = random_matrix(5, 6, 2), dy = random_matrix(5, 6, 3), y{5, 6}, dx = zeros(5, 6);
  RmsNorm<double> norm{gain.weight()};
  RmsNorm<double>::Saved saved;

  double loss() {
    norm.forward(x, y, saved);
    return inner_product(y, dy);
  }
  void backward() {
    loss();
    norm.backward(x, dy, dx, saved);
  }
};

TEST(RmsNormBackward, AgreesWithFiniteDifferences) {
  NormCase c;
  c.backward();
  EXPECT_LT(gradient_error("rms_norm x", c.x, c.dx, [&] { return c.loss(); }), kGradientTolerance);
  EXPECT_LT(gradient_error("rms_norm gain", c.gain.value, c.gain.gradient, [&] { return c.loss(); }),
            kGradientTolerance);
}

TEST(RmsNormBackwardBroken, AMeanOfAnotherRowIsSeen) {
  NormCase c;
  c.loss();
  std::swap(c.saved.inverse_rms[0], c.saved.inverse_rms[1]);
  c.norm.backward(c.x, c.dy, c.dx, c.saved);
  EXPECT_GT(gradient_error("rms_norm x, broken", c.x, c.dx, [&] { return c.loss(); }), 100 * kGradientTolerance);
}

TEST(RotaryBackward, AgreesWithFiniteDifferences) {
  const Rotary<double> rotary(4, 6);
  Matrix<double> x = random_matrix(8, 12, 1), dy = random_matrix(8, 12, 2), y(8, 12), dx(8, 12);
  const auto loss = [&] {
    std::copy_n(x.data(), x.size(), y.data());
    rotary.forward(y, 4);
    return inner_product(y, dy);
  };
  std::copy_n(dy.data(), dy.size(), dx.data());
  rotary.backward(dx, 4);
  EXPECT_LT(gradient_error("rotary", x, dx, loss), kGradientTolerance);

  std::copy_n(dy.data(), dy.size(), dx.data());
  rotary.forward(dx, 4);  // turned the wrong way
  EXPECT_GT(gradient_error("rotary, broken", x, dx, loss), 100 * kGradientTolerance);
}

// `sequence` beyond one block of queries covers the seam between blocks; heads share keys.
struct AttentionCase {
  AttentionShape shape{8, 4, 2, 2};
  Index sequence;
  OwnWeight qkv{(4 + 2 * 2) * 2, 8, 1, 0.7}, out{8, 8, 2, 0.7};
  Rotary<double> rotary;
  Attention<double> attention{shape, qkv.weight(), out.weight(), rotary};
  Matrix<double> x, dy, y, dx;
  Attention<double>::Saved saved;
  Attention<double>::Scratch scratch;

  explicit AttentionCase(Index length)
      : sequence(length),
        rotary(length, 2),
        x(random_matrix(2 * length, 8, 3)),
        dy(random_matrix(2 * length, 8, 4)),
        y(2 * length, 8),
        dx(zeros(2 * length, 8)) {}
  double loss() {
    y.fill(0);
    attention.forward(x, sequence, y, saved);
    return inner_product(y, dy);
  }
};

TEST(AttentionBackward, AgreesWithFiniteDifferences) {
  for (const Index length : {Index{1}, Index{5}, Attention<double>::kQueryBlock + 3}) {
    AttentionCase c(length);
    c.loss();
    c.attention.backward(c.x, c.sequence, c.dy, c.dx, c.saved, c.scratch);
    const auto loss = [&] { return c.loss(); };
    EXPECT_LT(gradient_error("attention x", c.x, c.dx, loss), kGradientTolerance) << "length " << length;
    EXPECT_LT(gradient_error("attention qkv", c.qkv.value, c.qkv.gradient, loss), kGradientTolerance);
    EXPECT_LT(gradient_error("attention out", c.out.value, c.out.gradient, loss), kGradientTolerance);
  }
}

TEST(AttentionBackwardBroken, AProbabilityOfAnotherKeyIsSeen) {
  AttentionCase c(5);
  c.loss();
  std::swap(c.saved.probabilities.row(4)[0], c.saved.probabilities.row(4)[3]);
  c.attention.backward(c.x, c.sequence, c.dy, c.dx, c.saved, c.scratch);
  EXPECT_GT(gradient_error("attention x, broken", c.x, c.dx, [&] { return c.loss(); }), 100 * kGradientTolerance);
}

TEST(AttentionForward, NoTokenSeesALaterOne) {
  AttentionCase c(Attention<double>::kQueryBlock + 3);
  c.loss();
  const Matrix<double> before = std::move(c.y);
  c.y = Matrix<double>(before.rows(), before.columns());
  const Index changed = 40;
  c.x.row(changed)[0] += 1;
  c.loss();
  for (Index i = 0; i < c.sequence; ++i)
    EXPECT_EQ(std::equal(before.row(i), before.row(i) + 8, c.y.row(i)), i < changed) << "token " << i;
}

struct SwigluCase {
  OwnWeight gate_up{2 * 5, 4, 1}, down{4, 5, 2};
  Matrix<double> x = random_matrix(6, 4, 3), dy = random_matrix(6, 4, 4), y{6, 4}, dx{6, 4};
  Matrix<double> saved_gate_up{6, 10}, saved_inner{6, 5}, dinner{6, 5};
  Swiglu<double> layer{gate_up.weight(), down.weight()};
  Swiglu<double>::Saved saved{saved_gate_up, saved_inner};

  double loss() {
    layer.forward(x, Into::replace, y, saved);
    return inner_product(y, dy);
  }
};

TEST(SwigluBackward, AgreesWithFiniteDifferences) {
  SwigluCase c;
  c.loss();
  c.layer.backward_input(c.dy, Into::replace, c.dx, c.saved, c.dinner);
  c.layer.backward_weight(c.x, c.dy, c.saved);
  const auto loss = [&] { return c.loss(); };
  EXPECT_LT(gradient_error("swiglu x", c.x, c.dx, loss), kGradientTolerance);
  EXPECT_LT(gradient_error("swiglu gate and up", c.gate_up.value, c.gate_up.gradient, loss), kGradientTolerance);
  EXPECT_LT(gradient_error("swiglu down", c.down.value, c.down.gradient, loss), kGradientTolerance);
}

TEST(SwigluBackwardBroken, GateAndUpExchangedIsSeen) {
  SwigluCase c;
  c.loss();
  for (Index i = 0; i < 6; ++i)
    std::swap_ranges(c.saved_gate_up.row(i), c.saved_gate_up.row(i) + 5, c.saved_gate_up.row(i) + 5);
  c.layer.backward_input(c.dy, Into::replace, c.dx, c.saved, c.dinner);
  EXPECT_GT(gradient_error("swiglu x, broken", c.x, c.dx, [&] { return c.loss(); }), 100 * kGradientTolerance);
}

// The gradient that arrives is that of the combine weights; the balance loss adds its own through the probabilities.
struct RouterCase {
  int top_k;
  OwnWeight weight{5, 4, 1};
  Matrix<double> x = random_matrix(7, 4, 2), dweights, dx = zeros(7, 4), dlogits;
  Router<double> router;
  Router<double>::Saved saved;
  std::vector<std::int64_t> counts{9, 1, 4, 0, 7};  // of an imagined global batch: constants, as the loss has them

  explicit RouterCase(int k) : top_k(k), dweights(random_matrix(7, k, 3)), router(weight.weight(), k) {}
  Router<double>::Balance balance() const { return {0.3, 21, &counts}; }
  double loss() {
    router.forward(x, saved);
    return inner_product(saved.weights, dweights) + router.balance_loss(saved, balance());
  }
};

TEST(RouterBackward, AgreesWithFiniteDifferences) {
  for (const int top_k : {1, 2, 3, 5}) {
    RouterCase c(top_k);
    c.loss();
    c.router.backward(c.x, c.dweights, c.balance(), c.dx, c.saved, c.dlogits);
    const auto loss = [&] { return c.loss(); };
    EXPECT_LT(gradient_error("router x", c.x, c.dx, loss), kGradientTolerance) << "top-k " << top_k;
    EXPECT_LT(gradient_error("router weight", c.weight.value, c.weight.gradient, loss), kGradientTolerance);
  }
}

TEST(RouterBackwardBroken, ABalanceLossThatIsForgottenIsSeen) {
  RouterCase c(2);
  c.loss();
  c.router.backward(c.x, c.dweights, {0, 21, &c.counts}, c.dx, c.saved, c.dlogits);
  EXPECT_GT(gradient_error("router x, broken", c.x, c.dx, [&] { return c.loss(); }), 100 * kGradientTolerance);
}

// A whole mixture on one rank, with a shared expert; its counts are its own global counts, held fixed while differentiating.
struct MoeCase {
  static constexpr Index kHidden = 4, kInner = 3, kTokens = 9;
  int experts, top_k;
  OwnWeight router, gate_up, down, shared_gate_up{2 * 5, kHidden, 4, 0.6}, shared_down{kHidden, 5, 5, 0.6};
  Communicator alone;
  ExpertExchange<double> exchange{alone, experts, kHidden};
  Moe<double> moe;
  Matrix<double> x = random_matrix(kTokens, kHidden, 6), dy = random_matrix(kTokens, kHidden, 7), y{kTokens, kHidden},
                 dx = zeros(kTokens, kHidden);
  Moe<double>::Saved saved;
  Moe<double>::Scratch scratch;

  MoeCase(int e, int k)
      : experts(e),
        top_k(k),
        router(e, kHidden, 1),
        gate_up(e * 2 * kInner, kHidden, 2),
        down(e * kHidden, kInner, 3),
        moe(weights(), k, exchange, alone) {}
  Moe<double>::Weights weights() const {
    Moe<double>::Weights all{router.weight(), {}, {}};
    const auto rows = [](const OwnWeight& w, Index first, Index count) {
      return Weight<double>{w.value.view().row_range(first, count), w.gradient.view().row_range(first, count)};
    };
    for (Index e = 0; e < experts; ++e)
      all.experts.emplace_back(rows(gate_up, e * 2 * kInner, 2 * kInner), rows(down, e * kHidden, kHidden));
    all.shared.emplace(shared_gate_up.weight(), shared_down.weight());
    return all;
  }
  double loss() {
    y.fill(0);
    EXPECT_TRUE(moe.forward(x, true, y, saved, scratch).ok());
    return inner_product(y, dy) + moe.balance_loss(saved, 0.3, kTokens);
  }
  void backward() {
    loss();
    EXPECT_TRUE(moe.backward(x, dy, 0.3, kTokens, dx, saved, scratch).ok());
  }
  double worst() {
    const auto at = [this] { return loss(); };
    double error = gradient_error("moe x", x, dx, at);
    for (const auto& [name, weight] : {std::pair{"moe router", &router},
                                       {"moe gate and up", &gate_up},
                                       {"moe down", &down},
                                       {"moe shared gate and up", &shared_gate_up},
                                       {"moe shared down", &shared_down}})
      error = std::max(error, gradient_error(name, weight->value, weight->gradient, at));
    return error;
  }
};

TEST(MoeBackward, AgreesWithFiniteDifferences) {
  for (const auto& [experts, top_k] : {std::pair{1, 1}, {4, 1}, {4, 2}, {5, 3}}) {
    MoeCase c(experts, top_k);
    c.backward();
    EXPECT_LT(c.worst(), kGradientTolerance) << experts << " experts, top-k " << top_k;
  }
}

TEST(MoeBackward, HoldsWhenAllTokensGoToOneExpertAndNoneToTheOthers) {
  MoeCase c(4, 1);
  c.router.value.fill(0);  // equal probabilities: expert 0 takes every token, 1 to 3 none
  c.loss();
  ASSERT_EQ(c.saved.global_counts, (std::vector<std::int64_t>{MoeCase::kTokens, 0, 0, 0}));
  c.backward();
  const auto at = [&c] { return c.loss(); };
  EXPECT_LT(gradient_error("moe x, one expert", c.x, c.dx, at), kGradientTolerance);
  EXPECT_LT(gradient_error("moe gate and up, one expert", c.gate_up.value, c.gate_up.gradient, at), kGradientTolerance);
  EXPECT_LT(gradient_error("moe down, one expert", c.down.value, c.down.gradient, at), kGradientTolerance);
}

TEST(MoeBackwardBroken, ACombineWeightThatIsForgottenIsSeen) {
  MoeCase c(4, 2);
  c.loss();
  std::fill_n(c.saved.router.weights.data(), c.saved.router.weights.size(), 1.0);
  ASSERT_TRUE(c.moe.backward(c.x, c.dy, 0.3, MoeCase::kTokens, c.dx, c.saved, c.scratch).ok());
  EXPECT_GT(gradient_error("moe x, broken", c.x, c.dx, [&] { return c.loss(); }), 100 * kGradientTolerance);
}

TEST(MoeBackwardBroken, ASlotThatReturnsToAnotherTokenIsSeen) {
  MoeCase c(4, 2);
  c.loss();
  std::swap(c.saved.plan.row_of_slot[0], c.saved.plan.row_of_slot[7]);
  ASSERT_TRUE(c.moe.backward(c.x, c.dy, 0.3, MoeCase::kTokens, c.dx, c.saved, c.scratch).ok());
  EXPECT_GT(gradient_error("moe x, broken", c.x, c.dx, [&] { return c.loss(); }), 100 * kGradientTolerance);
}

TEST(EmbeddingBackward, AgreesWithFiniteDifferencesAlsoForTokensThatRepeat) {
  OwnWeight table(4, 3, 1);
  const std::vector<std::int32_t> tokens{2, 0, 2, 2, 1};  // 3 never
  Matrix<double> out(5, 3), dout = random_matrix(5, 3, 2);
  embed_backward<double>(table.weight(), tokens, dout);
  const auto loss = [&] {
    embed<double>(table.weight(), tokens, out);
    return inner_product(out, dout);
  };
  EXPECT_LT(gradient_error("embedding", table.value, table.gradient, loss), kGradientTolerance);
  double_one(table.gradient);
  EXPECT_GT(gradient_error("embedding, broken", table.value, table.gradient, loss), 100 * kGradientTolerance);
}

TEST(CrossEntropyBackward, AgreesWithFiniteDifferencesAndLeavesOutWhatDoesNotCount) {
  Matrix<double> z = random_matrix(5, 7, 1, 3), p(5, 7);
  std::vector<std::int32_t> targets{3, 0, kNotCounted, 6, 3};
  const auto loss = [&] {
    std::copy_n(z.data(), z.size(), p.data());
    return cross_entropy<double>(p, targets) / 4;
  };
  loss();
  Matrix<double> dz(5, 7);
  std::copy_n(p.data(), p.size(), dz.data());
  cross_entropy_backward<double>(dz, targets, 1.0 / 4);
  EXPECT_LT(gradient_error("cross-entropy", z, dz, loss), kGradientTolerance);
  double_one(dz);
  EXPECT_GT(gradient_error("cross-entropy, broken", z, dz, loss), 100 * kGradientTolerance);
}

TEST(CrossEntropy, IsTheLogarithmOfTheTargetsProbability) {
  Matrix<double> z = random_matrix(3, 4, 9, 5);
  double want = 0;
  const std::vector<std::int32_t> targets{1, 3, 0};
  for (Index i = 0; i < 3; ++i) {
    double sum = 0;
    for (Index j = 0; j < 4; ++j) sum += std::exp(z.row(i)[j]);
    want -= std::log(std::exp(z.row(i)[targets[static_cast<std::size_t>(i)]]) / sum);
  }
  EXPECT_NEAR(cross_entropy<double>(z, targets), want, 1e-12);
}

}  // namespace
}  // namespace sluice
