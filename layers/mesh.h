// The mesh: which ranks share what. Axis -> communicator -> lane.
//
//   Axes     world = tp * cp * pp * dp; today tp = cp = pp = etp = 1. Experts are carved from dp: rank r is number r % ep of its
//            expert group and number r / ep over the groups (edp = dp / ep), so an expert group is ranks side by side.
//   Lanes    "dp" (bulk): gradients, counts and losses, over dp and over edp. "ep" (urgent): the rows on their way to the
//            experts and back, which the computation waits for.
//   Alone    a group of one rank, or a world that is not valid(), communicates nothing.
#pragma once

#include "base/result.h"
#include "comm/communicator.h"

namespace sluice {

struct MeshShape {
  int dp = 1;
  int ep = 1;  // divides dp
};

class Mesh {
 public:
  // One rank, no communication.
  Mesh() = default;
  // Collective over `world`. Errors: invalid_argument when the axes do not make the world; what split() says.
  static Result<Mesh> create(Communicator world, MeshShape shape);

  const MeshShape& shape() const { return shape_; }
  int dp_rank() const { return dp_rank_; }
  int ep_rank() const { return dp_rank_ % shape_.ep; }
  // Not valid() for a group of one.
  Communicator& dp() { return dp_; }
  Communicator& ep() { return ep_; }
  Communicator& edp() { return edp_; }  // ranks that hold the same experts

  // Collective: see Communicator::close(). The first error.
  Status close();
  // Local: ends what is under way on every group, here and at the other ranks, so that buffers are free again.
  void abort(const std::string& why);

 private:
  MeshShape shape_;
  int dp_rank_ = 0;
  Communicator dp_;
  Communicator ep_;
  Communicator edp_;
};

// Whether `shape` can be laid on `ranks` ranks: invalid_argument names the axes and what would fit.
Status check_mesh(MeshShape shape, int ranks);

inline int ranks_of(const Communicator& group) { return group.valid() ? group.ranks() : 1; }
inline int rank_of(const Communicator& group) { return group.valid() ? group.rank() : 0; }

// Part i of n of [0, count): [i * count / n, (i + 1) * count / n). Any count, any n; parts may be empty.
struct Part {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
constexpr Part part_of(std::int64_t count, int i, int n) {
  const std::int64_t first = count * i / n;
  return {first, count * (i + 1) / n - first};
}

template <typename T>
constexpr DataType data_type_of();
template <>
constexpr DataType data_type_of<float>() {
  return DataType::float32;
}
template <>
constexpr DataType data_type_of<double>() {
  return DataType::float64;
}
template <>
constexpr DataType data_type_of<std::int64_t>() {
  return DataType::int64;
}

}  // namespace sluice
