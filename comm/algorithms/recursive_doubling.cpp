#include "comm/algorithms/recursive_doubling.h"

#include <algorithm>

#include "comm/algorithms/request.h"

namespace sluice {

Result<Schedule> recursive_doubling_all_reduce(const AlgorithmRequest& request) {
  const int ranks = request.ranks;
  SLUICE_TRY(check_request(request, Collective::all_reduce, powers_of_two(ranks)));
  const int half = power_of_two_within(ranks);
  const int extra = ranks - half;
  ScheduleBuilder builder("recursive_doubling_all_reduce",
                          {Collective::all_reduce, ranks, 1, 0, /*scratch=*/ranks > 2 ? 1 : 0}, request.only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));

  for (Rank rank = 0; rank < extra; ++rank) builder.reduce(input(rank, 0), input(half + rank, 0), scratch(rank, 0));

  for (int distance = 1; distance < half; distance *= 2)
    builder.together([&] {
      const auto held = [&](Rank rank) { return distance == 1 && rank >= extra ? input(rank, 0) : scratch(rank, 0); };
      for (Rank rank = 0; rank < half; ++rank) {
        const Rank partner = rank ^ distance;
        const Place sum = 2 * distance == half ? output(rank, 0) : scratch(rank, 0);
        builder.reduce(held(std::min(rank, partner)), held(std::max(rank, partner)), sum);
      }
    });

  for (Rank rank = 0; rank < extra; ++rank) builder.copy(output(rank, 0), output(half + rank, 0));
  return std::move(builder).build();
}

AlgorithmCost recursive_doubling_all_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  const int half = power_of_two_within(ranks);
  const int rounds = log2_up(half);
  const bool folded = half != ranks;
  return {rounds + (folded ? 2.0 : 0.0), (rounds + (folded ? 1 : 0)) * bytes,
          2.0 * (rounds + (folded ? 1 : 0)) * bytes};
}

}  // namespace sluice
