// Checks a backward against its forward in double precision: the derivative of a number by central differences.
//
//   Error    the largest difference between two gradients over the largest finite difference of the tensor. With a step of
//            1e-5 the method itself errs by about 1e-9 of that; a wrong term shows as 1e-2 and more.
#pragma once

#include <cmath>
#include <cstdio>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "layers/compute/matrix.h"
#include "layers/parameters.h"

namespace sluice::test {

inline constexpr double kGradientTolerance = 1e-6;

// `loss` reads `values`; `gradient` is what the backward said. Prints and returns the error.
inline double gradient_error(const std::string& what, View<double> values, View<const double> gradient,
                             const std::function<double()>& loss, double step = 1e-5) {
  double worst = 0;
  double largest = 0;
  for (Index i = 0; i < values.rows; ++i)
    for (Index j = 0; j < values.columns; ++j) {
      double& x = values.row(i)[j];
      const double kept = x;
      x = kept + step;
      const double above = loss();
      x = kept - step;
      const double below = loss();
      x = kept;
      const double numeric = (above - below) / (2 * step);
      worst = std::max(worst, std::abs(numeric - gradient.row(i)[j]));
      largest = std::max(largest, std::abs(numeric));
    }
  const double error = largest > 0 ? worst / largest : worst;
  std::printf("  %-28s relative error %.2e, largest gradient %.2e\n", what.c_str(), error, largest);
  return error;
}

inline void fill_random(View<double> x, std::uint64_t seed, double scale = 1) {
  Rng rng(seed);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < x.columns; ++j) x.row(i)[j] = scale * (2 * rng.uniform() - 1);
}

inline Matrix<double> random_matrix(Index rows, Index columns, std::uint64_t seed, double scale = 1) {
  Matrix<double> matrix(rows, columns);
  fill_random(matrix, seed, scale);
  return matrix;
}

// A weight that owns its memory.
struct OwnWeight {
  Matrix<double> value, gradient;
  OwnWeight(Index rows, Index columns, std::uint64_t seed, double scale = 1)
      : value(random_matrix(rows, columns, seed, scale)), gradient(rows, columns) {
    gradient.fill(0);
  }
  Weight<double> weight() const { return {value, gradient}; }
};

// sum of a o b: with b as the output's gradient, a number whose derivative the backward computes.
inline double inner_product(View<const double> a, View<const double> b) {
  double sum = 0;
  for (Index i = 0; i < a.rows; ++i)
    for (Index j = 0; j < a.columns; ++j) sum += a.row(i)[j] * b.row(i)[j];
  return sum;
}

}  // namespace sluice::test
