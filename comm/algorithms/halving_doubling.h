// Recursive halving and doubling: in round k the partners at distance 2^k each take half of the chunks that both hold, and
// sum them; for the all-reduce the finished chunks then come back the same way.
//
//   Shapes    all_reduce: H chunks (H = the largest power of two within P), rank r ends the halving with the sum of chunk r.
//             reduce_scatter: a block per rank. The P-H ranks from H on first give all to the rank H below.
//   Cost      reduce-scatter: rank r sends (H-1)/H S bytes in log2 H rounds of S/2, S/4, ...; a round of m chunks takes m/4 levels
//             (kMessagesPerLevel). The all-reduce costs twice that; if P is not a power of two, S bytes more each way.
//             Scratch: S bytes if sums are kept as accumulators (canonical) or for a reduce-scatter.
//   Order     canonical for powers of two: nearest partners first, so the sum of a chunk always covers an aligned block of ranks.
//   Source    Rabenseifner, "Optimization of collective reduction operations", ICCS 2004. It halves at the greatest distance
//             first; the other way round each rank ends with the chunk of its own number and the sums keep the order of ranks.
#pragma once

#include "comm/algorithms/algorithms.h"

namespace sluice {

Result<Schedule> halving_doubling_all_reduce(const AlgorithmRequest& request);
AlgorithmCost halving_doubling_all_reduce_cost(int ranks, double bytes);

Result<Schedule> recursive_halving_reduce_scatter(const AlgorithmRequest& request);
AlgorithmCost recursive_halving_reduce_scatter_cost(int ranks, double bytes);

}  // namespace sluice
