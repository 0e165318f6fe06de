// Dispatch and combine of rows over the expert group: a token's row goes to the ranks that own its experts, and back.
//
//   Orders   `sorted`: a rank's slots by (expert, slot): what it sends to one rank lies together. `by_expert`: the rows that
//            arrived, by (local expert, source rank, source's order): what one expert's matrix product reads.
//   Owner    rank i of n owns experts [i E / n, (i + 1) E / n): any E, also fewer experts than ranks.
//   Cost     one all-to-all-v of E counts per plan, then one all-to-all-v of rows per verb: about slots * (n - 1) / n * hidden
//            elements sent, and one copy of the rows on the expert side, spared where a rank owns at most one expert. Dispatch
//            and combine are each other's transpose: the backward of one is the other with the same plan.
//   Zero     ranks without tokens and experts without rows are ordinary: every rank takes part in every exchange.
//   Alone    without a group nothing is sent or copied: source and target matrices change places.
#pragma once

#include <vector>

#include "comm/communicator.h"
#include "layers/mesh.h"
#include "layers/router.h"

namespace sluice {

struct DispatchPlan {
  std::vector<Index> row_of_slot;    // place of a slot in `sorted`
  std::vector<std::size_t> rows_to;  // per rank of the group
  std::vector<std::size_t> rows_from;
  std::vector<Index> expert_begin;  // local experts + 1: where each one's rows begin in `by_expert`
  struct Move {
    Index arrival = 0;
    Index by_expert = 0;
    Index rows = 0;
  };
  std::vector<Move> moves;  // from order of arrival (source, expert) to `by_expert`; empty: they are the same
  Index arrived() const { return expert_begin.back(); }
};

template <typename T>
class ExpertExchange {
 public:
  // `group` is borrowed; not valid() means alone.
  ExpertExchange(Communicator& group, int experts, Index hidden);

  Part local_experts() const { return part_of(experts_, rank_of(group_), ranks_of(group_)); }

  // Collective: learns what every rank of the group sends. Blocks.
  Status plan(const Routing& routing, DispatchPlan& plan);

  // Each verb is begun, then finished; at most one is under way. Both matrices are borrowed until finished; the source's
  // contents are gone afterwards. The target is shaped here.
  void begin_dispatch(const DispatchPlan& plan, Matrix<T>& sorted, Matrix<T>& by_expert);
  void begin_combine(const DispatchPlan& plan, Matrix<T>& by_expert, Matrix<T>& sorted);
  Status finish();

 private:
  bool alone() const { return !group_.valid(); }
  void post(const T* from, const std::vector<std::size_t>& to_counts, T* to,
            const std::vector<std::size_t>& from_counts);

  Communicator& group_;
  int experts_;
  Index hidden_;
  Matrix<T> staging_;  // rows in order of arrival
  std::vector<std::size_t> send_elements_, receive_elements_;
  Work work_;
  bool under_way_ = false;
  const DispatchPlan* to_reorder_ = nullptr;  // of a dispatch that arrives in staging_
  Matrix<T>* target_ = nullptr;
};

}  // namespace sluice
