// Sums gradients over the ranks that hold the same parameters, while the backward is still running.
//
//   Use      stage_done(s) as the model finishes stages, last first; then wait().
//   Buckets  neighbouring stages are joined until a message has `bucket_elements`; the sum of an element does not depend on
//            the buckets' borders.
//   Groups   replicated tensors: over dp. Experts' tensors: over edp, the ranks with the same experts. Both are plain
//            sums: the loss was divided by the global token count already, for dense and expert parameters alike.
//   Borrows  the gradients from stage_done() to wait().
#pragma once

#include "layers/mesh.h"
#include "layers/parameters.h"

namespace sluice {

template <typename T>
class GradientReducer {
 public:
  GradientReducer(Parameters<T>& parameters, Mesh& mesh, Order order, Index bucket_elements = 1 << 16)
      : parameters_(parameters), mesh_(mesh), order_(order), bucket_elements_(bucket_elements) {}

  void stage_done(int stage);
  // Until every sum posted has arrived. The first error, after all are done.
  Status wait();

 private:
  void add(int stage, Placement placement, Communicator& group);

  Parameters<T>& parameters_;
  Mesh& mesh_;
  Order order_;
  Index bucket_elements_;
  std::array<Range, kPlacements> waiting_{};  // finished and not yet posted
  Group posted_;
};

}  // namespace sluice
