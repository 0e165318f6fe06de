// Bruck's algorithms: log2 P rounds for any P, with neighbours at distance 1, 2, 4, ...
//
//   Shapes    a block per rank. all_gather moves blocks straight to their places, without scratch. all_to_all keeps the blocks that
//             it relays in two sets of P scratch blocks, which a block's moves use in turn.
//   Cost      log2 P rounds; a round of m blocks between two ranks takes m/4 levels (kMessagesPerLevel). all_gather: each rank
//             sends (P-1)/P S bytes. all_to_all: about log2(P)/2 S bytes, as a block moves once for every set bit of its distance.
//   Use for   short blocks: all_gather over many ranks; all_to_all where a message costs more than carrying a block further.
//   Source    Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in multiport message-
//             passing systems", IEEE TPDS 8(11), 1997.
#pragma once

#include "comm/algorithms/algorithms.h"

namespace sluice {

Result<Schedule> bruck_all_gather(const AlgorithmRequest& request);
AlgorithmCost bruck_all_gather_cost(int ranks, double bytes);

// Relays move blocks of other ranks, so the extents must be known to all: not for v-forms.
Result<Schedule> bruck_all_to_all(const AlgorithmRequest& request);
AlgorithmCost bruck_all_to_all_cost(int ranks, double bytes);

}  // namespace sluice
