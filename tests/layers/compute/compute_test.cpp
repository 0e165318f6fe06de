// Products and row arithmetic against the plainest loops.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "layers/compute/exponential.h"
#include "layers/compute/rows.h"
#include "tests/layers/support/finite_difference.h"

namespace sluice {
namespace {

// target = scale * sum over d of a(i, d) * b(d, j), one product at a time.
template <typename A, typename B>
Matrix<double> slow_product(Index rows, Index columns, Index depth, A a, B b) {
  Matrix<double> c(rows, columns);
  c.fill(0);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      for (Index d = 0; d < depth; ++d) c.row(i)[j] += a(i, d) * b(d, j);
  return c;
}

void expect_near(View<const double> got, View<const double> want) {
  for (Index i = 0; i < want.rows; ++i)
    for (Index j = 0; j < want.columns; ++j) ASSERT_NEAR(got.row(i)[j], want.row(i)[j], 1e-12) << i << "," << j;
}

TEST(Multiply, AllThreeFormsAreTheSumOfProducts) {
  for (const Index depth : {0, 1, 5}) {
    const Matrix<double> a = test::random_matrix(3, depth, 1), b = test::random_matrix(depth, 4, 2);
    const Matrix<double> at = test::random_matrix(depth, 3, 3), bt = test::random_matrix(4, depth, 4);
    Matrix<double> c(3, 4);
    multiply(c.view(), Into::replace, a, b);
    expect_near(c, slow_product(
                       3, 4, depth, [&](Index i, Index d) { return a.row(i)[d]; },
                       [&](Index d, Index j) { return b.row(d)[j]; }));
    multiply_by_transposed(c.view(), Into::replace, a, bt);
    expect_near(c, slow_product(
                       3, 4, depth, [&](Index i, Index d) { return a.row(i)[d]; },
                       [&](Index d, Index j) { return bt.row(j)[d]; }));
    multiply_transposed(c.view(), Into::replace, at, b);
    expect_near(c, slow_product(
                       3, 4, depth, [&](Index i, Index d) { return at.row(d)[i]; },
                       [&](Index d, Index j) { return b.row(d)[j]; }));
  }
}

TEST(Multiply, AddsWhereItIsToldToAndScales) {
  const Matrix<double> a = test::random_matrix(2, 3, 1), b = test::random_matrix(3, 2, 2);
  Matrix<double> once(2, 2), twice(2, 2);
  multiply(once.view(), Into::replace, a, b, 2.0);
  multiply(twice.view(), Into::replace, a, b);
  multiply(twice.view(), Into::add, a, b);
  expect_near(twice, once);
}

TEST(Multiply, LeavesWhatLiesBesideAViewAlone) {
  Matrix<double> c(2, 4);
  c.fill(7);
  const Matrix<double> a = test::random_matrix(2, 3, 1), b = test::random_matrix(3, 2, 2);
  multiply(c.view().column_range(1, 2), Into::replace, a, b);
  for (Index i = 0; i < 2; ++i) {
    EXPECT_EQ(c.row(i)[0], 7);
    EXPECT_EQ(c.row(i)[3], 7);
  }
}

TEST(Multiply, ZeroRowsAreLegal) {
  Matrix<double> none(0, 3), out(0, 2);
  const Matrix<double> b = test::random_matrix(3, 2, 2);
  multiply(out.view(), Into::replace, none, b);
  Matrix<double> weight = test::random_matrix(3, 2, 5);
  const Matrix<double> before = test::random_matrix(3, 2, 5);
  multiply_transposed(weight.view(), Into::add, none, out);
  expect_near(weight, before);
}

TEST(Exponential, IsWithinTwoUnitsOfTheLastPlace) {
  double worst = 0;
  for (float x = -87; x < 88; x += 0.000713f) {
    const double want = std::exp(static_cast<double>(x));
    const double unit = std::nextafter(static_cast<float>(want), 1e38f) - static_cast<double>(static_cast<float>(want));
    worst = std::max(worst, std::abs(static_cast<double>(exponential(x)) - want) / unit);
  }
  std::printf("  largest error %.2f units in the last place\n", worst);
  EXPECT_LT(worst, 2);
  EXPECT_EQ(exponential(0.0f), 1.0f);
}

TEST(Exponential, ClampsWhatAFloatCannotHold) {
  EXPECT_GT(exponential(-1e30f), 0);
  EXPECT_LT(exponential(-1e30f), 1e-37f);
  EXPECT_TRUE(std::isfinite(exponential(1e30f)));
}

TEST(SoftmaxRows, SumToOneAndDoNotOverflow) {
  Matrix<float> x(2, 11);
  for (Index j = 0; j < 11; ++j) {
    x.row(0)[j] = static_cast<float>(1000 + j);
    x.row(1)[j] = static_cast<float>(-1000 * j);
  }
  softmax_rows(x.view());
  for (Index i = 0; i < 2; ++i) {
    float sum = 0;
    for (Index j = 0; j < 11; ++j) sum += x.row(i)[j];
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_NEAR(x.row(0)[9] / x.row(0)[10], std::exp(-1.0f), 1e-6);
}

TEST(SoftmaxRowsBackward, AgreesWithFiniteDifferences) {
  Matrix<double> x = test::random_matrix(3, 19, 1, 2), p(3, 19), dp = test::random_matrix(3, 19, 2), dx(3, 19);
  const auto loss = [&] {
    std::copy_n(x.data(), x.size(), p.data());
    for (Index i = 0; i < p.size(); ++i) p.data()[i] *= 0.7;
    softmax_rows(p.view());
    return test::inner_product(p, dp);
  };
  loss();
  std::copy_n(dp.data(), dp.size(), dx.data());
  softmax_rows_backward(p, dx.view(), 0.7);
  EXPECT_LT(test::gradient_error("softmax", x, dx, loss), test::kGradientTolerance);
}

// Lengths around the number of partial results; `run` is given a set and two buffers to work on.
template <typename T>
void expect_same_bits(const std::function<void(const RowKernels<T>&, std::vector<T>&, std::vector<T>&)>& run) {
  Rng rng(4);
  for (const std::size_t count : {1, 2, 7, 8, 9, 16, 31, 128, 257}) {
    std::vector<T> a(count), b(count);
    for (T& x : a) x = static_cast<T>(20 * rng.uniform() - 10);
    for (T& x : b) x = static_cast<T>(2 * rng.uniform() - 1);
    std::vector<T> want_a = a, want_b = b;
    run(*runnable_row_kernels<T>().front(), want_a, want_b);
    for (const RowKernels<T>* set : runnable_row_kernels<T>()) {
      std::vector<T> got_a = a, got_b = b;
      run(*set, got_a, got_b);
      EXPECT_EQ(std::memcmp(got_a.data(), want_a.data(), count * sizeof(T)), 0)
          << set->name << ", " << count << " elements";
      EXPECT_EQ(std::memcmp(got_b.data(), want_b.data(), count * sizeof(T)), 0)
          << set->name << ", " << count << " elements";
    }
  }
}

template <typename T>
void expect_same_bits_everywhere() {
  using Set = RowKernels<T>;
  using Row = std::vector<T>;
  const auto n = [](const Row& x) { return static_cast<Index>(x.size()); };
  expect_same_bits<T>([&](const Set& set, Row& a, Row& b) { a[0] = set.dot(a.data(), b.data(), n(a)); });
  expect_same_bits<T>([&](const Set& set, Row& a, Row&) { a[0] = set.largest(a.data(), n(a)); });
  expect_same_bits<T>([&](const Set& set, Row& a, Row&) { set.softmax(a.data(), n(a)); });
  expect_same_bits<T>([&](const Set& set, Row& a, Row& b) { set.softmax_backward(b.data(), a.data(), n(a), T(0.3)); });
  expect_same_bits<T>([&](const Set& set, Row& a, Row& b) { set.swiglu(a.data(), b.data(), b.data(), n(a)); });
  expect_same_bits<T>([&](const Set& set, Row& a, Row& b) {
    const Row dinner(a.rbegin(), a.rend());
    set.swiglu_backward(a.data(), b.data(), dinner.data(), n(a));
  });
}

TEST(RowKernels, GiveTheSameBitsInEveryInstructionSet) {
  for (const auto* set : runnable_row_kernels<float>()) std::printf("  %s\n", set->name);
  expect_same_bits_everywhere<float>();
  expect_same_bits_everywhere<double>();
}

}  // namespace
}  // namespace sluice
