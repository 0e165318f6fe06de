// The parameters of one rank: where each tensor lies in flat memory, and over which axes its gradient is a partial sum.
//
//   Layout   two flat arrays each for values and gradients: tensors that every rank holds (dense), then tensors of which
//            a rank holds its experts' part. Inside each, tensors lie in the order they were added, without gaps, so
//            tensors added one after another form one taller matrix (q, k, v; gate, up).
//   Stages   a tensor belongs to a stage: 0 the embedding, 1..L the blocks, L+1 the head. Backward finishes the gradients
//            of whole stages, last first, and a stage's tensors lie together: what data_parallel.h sends is one range.
//   Names    are logical ("layers.1.experts.5.gate"): the same at every rank and in every layout.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "layers/compute/matrix.h"

namespace sluice {

// How a tensor lies over the data-parallel axes: the expert axis (ep, innermost) and the rest of dp (edp).
enum class Placement : std::uint8_t {
  replicated,  // every rank of dp holds it; the gradient is a partial sum over dp
  by_expert,   // a rank holds its own experts; the gradient is a partial sum over edp, complete over ep
};
inline constexpr int kPlacements = 2;

struct ParameterSpec {
  std::string name;
  Index rows = 0;
  Index columns = 0;
  Placement placement = Placement::replicated;
  double spread = 0;   // standard deviation of the initial values; 0: all start at one
  bool decays = true;  // weight decay applies
};

struct Range {
  Index first = 0;
  Index count = 0;
};

template <typename T>
struct Weight {
  View<T> value;
  View<T> gradient;
};

using ParameterId = std::size_t;

template <typename T>
class Parameters {
 public:
  struct Tensor {
    ParameterSpec spec;
    Index offset = 0;  // in the arrays of its placement
  };

  // Stages are added in order; a tensor belongs to the newest one. After allocate() nothing can be added.
  void begin_stage();
  ParameterId add(ParameterSpec spec);
  // Takes the memory, sets the initial values as a function of (seed, name, element) alone, zeroes the gradients.
  void allocate(std::uint64_t seed);

  Weight<T> operator[](ParameterId id) const;
  // `count` tensors added one after another, of the same columns, as one matrix.
  Weight<T> stacked(ParameterId first, std::size_t count) const;

  const std::vector<Tensor>& tensors() const { return tensors_; }
  int stages() const { return static_cast<int>(stages_.size()); }
  Range stage(int stage, Placement placement) const;
  View<T> values(Placement placement) const { return arrays_[static_cast<std::size_t>(placement)].values; }
  View<T> gradients(Placement placement) const { return arrays_[static_cast<std::size_t>(placement)].gradients; }
  Index count(Placement placement) const { return arrays_[static_cast<std::size_t>(placement)].count; }
  void zero_gradients();

 private:
  struct Array {
    Index count = 0;
    Matrix<T> values;  // one row
    Matrix<T> gradients;
  };
  std::array<Array, kPlacements> arrays_;
  std::vector<Tensor> tensors_;
  std::vector<std::array<Index, kPlacements>> stages_;  // where each stage begins in each array
};

}  // namespace sluice
