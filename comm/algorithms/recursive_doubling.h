// Recursive doubling: in round k the partners at distance 2^k exchange what they have summed so far.
//
//   Shapes    one chunk. With H = the largest power of two within P: the P-H ranks from H on first give their input to the
//             rank H below, and get the result from it.
//   Cost      log2 P levels (2 more if P is not a power of two); each rank sends S bytes a level.
//   Order     canonical for powers of two: after round k a rank holds the sum of its aligned block of 2^(k+1) ranks. The sums
//             stay in one scratch place, as accumulators.
//   Use for   short messages.
//   Source    Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19(1), 2005.
#pragma once

#include "comm/algorithms/algorithms.h"

namespace sluice {

Result<Schedule> recursive_doubling_all_reduce(const AlgorithmRequest& request);
AlgorithmCost recursive_doubling_all_reduce_cost(int ranks, double bytes);

}  // namespace sluice
