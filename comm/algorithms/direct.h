// Direct forms: every rank reads what it needs from the ranks that have it.
//
//   Use for   short messages, or few ranks on links that all go everywhere (shared memory, NVLink); on a network a rank's
//             P-1 messages at once meet at one port.
//   Order     sums are one combine over the inputs in the order of ranks, in the canonical tree: always canonical.
//   Source    folklore; the two-shot form is the reduce-scatter and all-gather of Thakur, Rabenseifner, Gropp,
//             "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005, in one step each.
#pragma once

#include "comm/algorithms/algorithms.h"

namespace sluice {

// Every rank reads every input and sums: 1 level, P-1 messages of S bytes from each rank.
Result<Schedule> one_shot_all_reduce(const AlgorithmRequest& request);
AlgorithmCost one_shot_all_reduce_cost(int ranks, double bytes);

// P chunks: rank r sums chunk r of all inputs and gives every rank the sum, straight to where it is wanted if that lies in a window:
// 1 level, 2(P-1)/P S bytes from each rank.
Result<Schedule> two_shot_all_reduce(const AlgorithmRequest& request);
AlgorithmCost two_shot_all_reduce_cost(int ranks, double bytes);

// Rank r sums block r of all inputs: 1 level, (P-1)/P S bytes from each rank.
Result<Schedule> direct_reduce_scatter(const AlgorithmRequest& request);
AlgorithmCost direct_reduce_scatter_cost(int ranks, double bytes);

// Every rank reads every block: 1 level, (P-1)/P S bytes from each rank.
Result<Schedule> direct_all_gather(const AlgorithmRequest& request);
AlgorithmCost direct_all_gather_cost(int ranks, double bytes);

// Every rank reads the root's input: 1 level, (P-1) S bytes from the root.
Result<Schedule> direct_broadcast(const AlgorithmRequest& request);
AlgorithmCost direct_broadcast_cost(int ranks, double bytes);

// The root reads and sums all inputs: 1 level, S bytes from each other rank.
Result<Schedule> direct_reduce(const AlgorithmRequest& request);
AlgorithmCost direct_reduce_cost(int ranks, double bytes);

// The root reads all blocks, or every rank its own from the root: 1 level, S/P bytes a message.
Result<Schedule> direct_gather(const AlgorithmRequest& request);
AlgorithmCost direct_gather_cost(int ranks, double bytes);
Result<Schedule> direct_scatter(const AlgorithmRequest& request);
AlgorithmCost direct_scatter_cost(int ranks, double bytes);

// Every rank reads its block from every rank, all in one moment, so that it is right in place: 1 level, (P-1)/P S bytes
// from each rank. At distance d rank r reads from rank r-d: no two ranks read the same one first.
Result<Schedule> pairwise_all_to_all(const AlgorithmRequest& request);
AlgorithmCost pairwise_all_to_all_cost(int ranks, double bytes);

}  // namespace sluice
