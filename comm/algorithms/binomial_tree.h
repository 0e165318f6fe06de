// Binomial trees: in round k the ranks at distance 2^k from each other meet, so log2 P rounds reach all P.
//
//   Shapes    all_reduce, broadcast and reduce: one chunk. gather and scatter: a block per rank; inner nodes keep the blocks
//             of their subtrees in scratch (P blocks).
//   Cost      log2 P levels (all_reduce: twice that). broadcast: the root sends log2 P times S bytes. reduce: S bytes from each rank.
//             gather and scatter: the root's nearest child or the root moves half of S; a round of m blocks takes m/4 levels.
//   Order     canonical for any P: rank r sums the aligned blocks that follow it. Sums stay in scratch, as accumulators. Under
//             Order::fast an all-reduce keeps them in the output, and a reduce starts its tree at the root.
//   Use for   short messages from or to one rank.
//   Source    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
#pragma once

#include "comm/algorithms/algorithms.h"

namespace sluice {

// Reduces to rank 0, then broadcasts.
Result<Schedule> binomial_tree_all_reduce(const AlgorithmRequest& request);
AlgorithmCost binomial_tree_all_reduce_cost(int ranks, double bytes);

Result<Schedule> binomial_tree_broadcast(const AlgorithmRequest& request);
AlgorithmCost binomial_tree_broadcast_cost(int ranks, double bytes);

// Canonical with a root other than 0: rank 0 makes the last sum and sends it to the root.
Result<Schedule> binomial_tree_reduce(const AlgorithmRequest& request);
AlgorithmCost binomial_tree_reduce_cost(int ranks, double bytes);

// Relays move blocks of other ranks, so the extents must be known to all: not for v-forms.
Result<Schedule> binomial_tree_gather(const AlgorithmRequest& request);
AlgorithmCost binomial_tree_gather_cost(int ranks, double bytes);
Result<Schedule> binomial_tree_scatter(const AlgorithmRequest& request);
AlgorithmCost binomial_tree_scatter_cost(int ranks, double bytes);

}  // namespace sluice
