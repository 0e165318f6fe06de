// Rings: every rank passes on to the next what came from the one before.
//
//   Shapes    all_reduce: P chunks, the chunk at place i of the ring is first summed at place i. reduce_scatter and all_gather:
//             a block per rank.
//   Cost      all_reduce 2(P-1) levels, each rank sends 2(P-1)/P S bytes; the other two half of it. reduce_scatter keeps
//             two blocks of scratch, which it writes in turn.
//   Order     fixed: each chunk is summed along the ring from another start.
//   Use for   large S on links of equal speed; for small S see recursive_doubling.h, a ring pays 2(P-1) latencies.
//   Source    Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms ...", JPDC 69(2), 2009.
#pragma once

#include <optional>
#include <span>

#include "comm/algorithms/algorithms.h"

namespace sluice {

// The rank at order[i] sends to the rank at order[i+1], the last to the first. Pure; any thread; `order` is read
// during the call only. Errors: invalid_argument unless `order` holds each of 0..P-1 once, 1 <= P <= kRanksMax.
Result<Schedule> ring_all_reduce(std::span<const Rank> order, std::optional<Rank> only = std::nullopt);
Result<Schedule> ring_reduce_scatter(std::span<const Rank> order, std::optional<Rank> only = std::nullopt);
Result<Schedule> ring_all_gather(std::span<const Rank> order, std::optional<Rank> only = std::nullopt);

// In the order of ranks.
Result<Schedule> ring_all_reduce(const AlgorithmRequest& request);
Result<Schedule> ring_reduce_scatter(const AlgorithmRequest& request);
Result<Schedule> ring_all_gather(const AlgorithmRequest& request);

AlgorithmCost ring_all_reduce_cost(int ranks, double bytes);
AlgorithmCost ring_reduce_scatter_cost(int ranks, double bytes);
AlgorithmCost ring_all_gather_cost(int ranks, double bytes);

}  // namespace sluice
