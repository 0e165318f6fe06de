// Chains: the ranks in a row from the root; slices of a long message follow one another along it, so that every link is busy.
//
//   Shapes    one chunk.
//   Cost      P-1 levels; each rank sends S bytes. reduce keeps one chunk of scratch.
//   Order     fixed: own value, then what the rest of the chain summed.
//   Use for   long messages from or to one rank.
//   Source    folklore; the pipelined broadcast of Johnsson, Ho, "Optimum broadcasting and personalized communication in
//             hypercubes", IEEE Trans. Computers 38(9), 1989.
#pragma once

#include "comm/algorithms/algorithms.h"

namespace sluice {

Result<Schedule> chain_broadcast(const AlgorithmRequest& request);
AlgorithmCost chain_broadcast_cost(int ranks, double bytes);

Result<Schedule> chain_reduce(const AlgorithmRequest& request);
AlgorithmCost chain_reduce_cost(int ranks, double bytes);

}  // namespace sluice
