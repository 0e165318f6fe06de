#include "comm/algorithms/chain.h"

#include <algorithm>

#include "comm/algorithms/request.h"

namespace sluice {

Result<Schedule> chain_broadcast(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::broadcast, true));
  const int ranks = request.ranks;
  const auto rank = [&](int place) { return (request.root + place) % ranks; };
  ScheduleBuilder builder("chain_broadcast", {Collective::broadcast, ranks, 1, request.root, 0}, request.only);
  builder.copy(input(request.root, 0), output(request.root, 0));
  for (int place = 1; place < ranks; ++place)
    builder.copy(place == 1 ? input(request.root, 0) : output(rank(place - 1), 0), output(rank(place), 0));
  return std::move(builder).build();
}

AlgorithmCost chain_broadcast_cost(int ranks, double bytes) {
  return {std::max(1.0, ranks - 1.0), ranks == 1 ? 0 : bytes, 0};
}

Result<Schedule> chain_reduce(const AlgorithmRequest& request) {
  const int ranks = request.ranks;
  SLUICE_TRY(check_request(request, Collective::reduce, one_rank(ranks)));
  const auto rank = [&](int place) { return (request.root + place) % ranks; };
  ScheduleBuilder builder("chain_reduce", {Collective::reduce, ranks, 1, request.root, ranks > 2 ? 1 : 0},
                          request.only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));
  for (int place = ranks - 2; place >= 0; --place) {
    const Place rest = place == ranks - 2 ? input(rank(place + 1), 0) : scratch(rank(place + 1), 0);
    builder.reduce(input(rank(place), 0), rest, place == 0 ? output(request.root, 0) : scratch(rank(place), 0));
  }
  return std::move(builder).build();
}

AlgorithmCost chain_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {ranks - 1.0, bytes, 2 * bytes};
}

}  // namespace sluice
