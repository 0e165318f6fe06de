// A mixture-of-experts layer: router, dispatch, SwiGLU experts, combine, and optionally an expert that every token visits.
//
//   Shapes   x, y [tokens, hidden]. Dropless: an expert takes every token that is sent to it, none and all included.
//   Forward  y_t += shared(x_t) + sum over j of weight_tj * expert_tj(x_t), in the order of the choices j.
//   Overlap  the shared expert runs while rows travel; so do the weight gradients in the backward.
//   Comm     forward: counts, rows out, rows back over ep, and the experts' counts summed over dp (waited for in the backward).
//            backward: rows out, rows back over ep.
#pragma once

#include <optional>
#include <vector>

#include "layers/expert_exchange.h"
#include "layers/mesh.h"
#include "layers/router.h"
#include "layers/swiglu.h"

namespace sluice {

template <typename T>
class Moe {
 public:
  struct Saved {
    typename Router<T>::Saved router;
    DispatchPlan plan;
    Matrix<T> by_expert;       // [arrived, hidden]: the experts' input
    Matrix<T> gate_up, inner;  // of all local experts, by_expert's rows
    Matrix<T> result;          // [slots, hidden], sorted: what came back
    Matrix<T> shared_gate_up, shared_inner;
    std::vector<std::int64_t> global_counts;  // slots per expert, summed over dp
    Work counting;
  };
  struct Scratch {
    Matrix<T> sorted, by_expert, dinput, dinner, dweights, dlogits;
  };
  struct Weights {
    Weight<T> router;
    std::vector<Swiglu<T>> experts;  // this rank's, ascending
    std::optional<Swiglu<T>> shared;
  };

  // `dp` may be not valid(): alone.
  Moe(Weights weights, int top_k, ExpertExchange<T>& exchange, Communicator& dp)
      : router_(weights.router, top_k), weights_(std::move(weights)), exchange_(exchange), dp_(dp) {}

  // Adds to y. `training`: also counts over dp for the balance loss.
  Status forward(Read<T> x, bool training, View<T> y, Saved& saved, Scratch& scratch);
  // Adds to dx and to the weights' gradients. balance_factor as in router.h; tokens: of the global batch.
  Status backward(Read<T> x, Read<T> dy, double balance_factor, std::int64_t tokens, View<T> dx, Saved& saved,
                  Scratch& scratch);
  // This rank's summand; after backward.
  double balance_loss(const Saved& saved, double factor, std::int64_t tokens) const;

 private:
  typename Swiglu<T>::Saved expert_rows(const Saved& saved, std::size_t expert) const;
  View<T> rows_of(const Matrix<T>& by_expert, const Saved& saved, std::size_t expert) const;
  void count_over_dp(Saved& saved);
  void run_experts(Saved& saved, Matrix<T>& result) const;
  void run_shared(Read<T> x, View<T> y, Saved& saved) const;
  void shared_backward(Read<T> x, Read<T> dy, View<T> dx, Saved& saved, Scratch& scratch) const;

  Router<T> router_;
  Weights weights_;
  ExpertExchange<T>& exchange_;
  Communicator& dp_;
};

}  // namespace sluice
