// The router: which k experts a token goes to, and with what weight. Softmax over the experts, then the k most probable.
//
//   Shapes   x [tokens, hidden], weight [experts, hidden]; slots = tokens * top_k, slot t * top_k + j is token t's j-th choice,
//            most probable first.
//   Ties     the lowest expert index wins, so that every layout chooses alike.
//   Weights  with `normalise`, a token's k weights sum to 1 (they do not for k = 1, where the weight would be a constant and the
//            router would learn nothing from the loss: there the probability itself is the weight).
//   Balance  the auxiliary loss is factor * E / (k N^2) * sum over e of count_e * (sum over t of p_te), with counts and N of the
//            whole global batch: it does not depend on the layout. Gradient through p only.
//   Source   Shazeer et al., "Outrageously Large Neural Networks", 2017; Fedus et al., "Switch Transformers", 2021;
//            Qiu et al., "Demons in the Detail", 2025 (global-batch counts).
#pragma once

#include <cstdint>
#include <vector>

#include "layers/compute/gemm.h"
#include "layers/parameters.h"

namespace sluice {

// Which expert each slot goes to; the part of a routing that does not depend on the scalar type.
struct Routing {
  int experts = 0;
  int top_k = 0;
  std::vector<int> expert;           // per slot
  std::vector<std::int64_t> counts;  // slots per expert, of this rank's tokens
  Index slots() const { return static_cast<Index>(expert.size()); }
};

template <typename T>
class Router {
 public:
  struct Saved {
    Matrix<T> probabilities;  // [tokens, experts]
    Matrix<T> weights;        // [tokens, top_k]
    Routing routing;
  };
  // What the balance loss needs of the global batch. counts: per expert; factor 0: no balance loss.
  struct Balance {
    double factor = 0;
    std::int64_t tokens = 0;
    const std::vector<std::int64_t>* counts = nullptr;
  };

  Router(Weight<T> weight, int top_k) : weight_(weight), top_k_(top_k) {}

  void forward(Read<T> x, Saved& saved) const;
  // dweights [tokens, top_k]: gradient of the combine weights. Adds to dx and to the weight's gradient. Overwrites
  // dlogits [tokens, experts].
  void backward(Read<T> x, Read<T> dweights, Balance balance, View<T> dx, const Saved& saved, Matrix<T>& dlogits) const;
  // This rank's summand of the balance loss; the sum over dp is the loss.
  double balance_loss(const Saved& saved, Balance balance) const;

  bool normalise() const { return top_k_ > 1; }

 private:
  Weight<T> weight_;
  int top_k_;
};

}  // namespace sluice
