#include "layers/router.h"

#include "layers/compute/rows.h"

namespace sluice {
namespace {

// The most probable expert that is not taken yet; the lowest index of equals.
template <typename T>
int best(const T* p, int experts, const int* taken, int taken_count) {
  int found = -1;
  for (int e = 0; e < experts; ++e) {
    if (std::find(taken, taken + taken_count, e) != taken + taken_count) continue;
    if (found < 0 || p[e] > p[found]) found = e;
  }
  return found;
}

double balance_slope(double factor, int experts, int top_k, std::int64_t tokens, std::int64_t count) {
  const double n = static_cast<double>(tokens);
  return factor * experts / (top_k * n * n) * static_cast<double>(count);
}

}  // namespace

template <typename T>
void Router<T>::forward(Read<T> x, Saved& saved) const {
  const int experts = static_cast<int>(weight_.value.rows);
  const View<T> p = saved.probabilities.shape(x.rows, experts);
  const View<T> weights = saved.weights.shape(x.rows, top_k_);
  multiply_by_transposed(p, Into::replace, x, weight_.value);
  softmax_rows(p);

  Routing& routing = saved.routing;
  routing.experts = experts;
  routing.top_k = top_k_;
  routing.expert.resize(static_cast<std::size_t>(x.rows * top_k_));
  routing.counts.assign(static_cast<std::size_t>(experts), 0);
  for (Index t = 0; t < x.rows; ++t) {
    int* chosen = routing.expert.data() + t * top_k_;
    T sum = 0;
    for (int j = 0; j < top_k_; ++j) {
      chosen[j] = best<T>(p.row(t), experts, chosen, j);
      ++routing.counts[static_cast<std::size_t>(chosen[j])];
      weights.row(t)[j] = p.row(t)[chosen[j]];
      sum += weights.row(t)[j];
    }
    if (normalise())
      for (int j = 0; j < top_k_; ++j) weights.row(t)[j] /= sum;
  }
}

// Through the normalisation g_j = p_j / s, s = sum of the chosen p: dp_j = (dg_j - sum of dg g) / s. Then the softmax.
template <typename T>
void Router<T>::backward(Read<T> x, Read<T> dweights, Balance balance, View<T> dx, const Saved& saved,
                         Matrix<T>& dlogits) const {
  const Routing& routing = saved.routing;
  const View<T> dp = dlogits.shape(x.rows, routing.experts);
  std::vector<T> slope(static_cast<std::size_t>(routing.experts), T{0});
  if (balance.factor != 0)
    for (std::size_t e = 0; e < slope.size(); ++e)
      slope[e] =
          static_cast<T>(balance_slope(balance.factor, routing.experts, top_k_, balance.tokens, (*balance.counts)[e]));

  for (Index t = 0; t < x.rows; ++t) {
    std::copy(slope.begin(), slope.end(), dp.row(t));
    const int* chosen = routing.expert.data() + t * top_k_;
    const T* g = saved.weights.row(t);
    const T* dg = dweights.row(t);
    T sum = 0;
    T mean = 0;
    for (int j = 0; j < top_k_; ++j) {
      sum += saved.probabilities.row(t)[chosen[j]];
      mean += dg[j] * g[j];
    }
    for (int j = 0; j < top_k_; ++j) dp.row(t)[chosen[j]] += normalise() ? (dg[j] - mean) / sum : dg[j];
  }
  softmax_rows_backward(saved.probabilities, dp, T{1});
  multiply(dx, Into::add, dp, weight_.value);
  multiply_transposed(weight_.gradient, Into::add, dp, x);
}

template <typename T>
double Router<T>::balance_loss(const Saved& saved, Balance balance) const {
  if (balance.factor == 0) return 0;
  double loss = 0;
  for (int e = 0; e < saved.routing.experts; ++e) {
    double sum = 0;
    for (Index t = 0; t < saved.probabilities.rows(); ++t) sum += static_cast<double>(saved.probabilities.row(t)[e]);
    loss += sum * balance_slope(balance.factor, saved.routing.experts, top_k_, balance.tokens,
                                (*balance.counts)[static_cast<std::size_t>(e)]);
  }
  return loss;
}

template class Router<float>;
template class Router<double>;

}  // namespace sluice
