#include "comm/algorithms/halving_doubling.h"

#include <algorithm>
#include <array>

#include "comm/algorithms/request.h"

namespace sluice {
namespace {

// Both collectives halve alike; `held` says where a rank has the sum of a chunk before round `distance`, `kept` where after it.
template <typename Held, typename Kept>
void halve(ScheduleBuilder& builder, int half, int chunks, Held held, Kept kept) {
  for (int distance = 1; distance < half; distance *= 2)
    for (int chunk = 0; chunk < chunks; ++chunk)
      for (Rank rank = 0; rank < half; ++rank) {
        if ((rank ^ chunk) & (2 * distance - 1)) continue;  // a rank keeps the chunks whose low bits are its own
        const Rank partner = rank ^ distance;
        builder.combine(
            std::array{held(std::min(rank, partner), chunk, distance), held(std::max(rank, partner), chunk, distance)},
            std::array{kept(rank, chunk, distance)}, Tree::chain, rank);
      }
}

// Levels of a halving over `chunks` chunks, with the folding before it if there is one: the rounds overlap, since each goes on
// with the chunks that the last one did first.
int levels_of_halving(int half, int chunks, bool folded) {
  if (folded) return levels_of(chunks) + log2_up(half);
  return levels_of((chunks + 1) / 2) + log2_up(half) - 1;
}

// How many of `blocks` blocks have the low bits of `rank` under `mask`.
int blocks_like(Rank rank, int mask, int blocks) { return (blocks - 1 - (rank & mask)) / (mask + 1) + 1; }

// The bits of `value` < `half`, the lowest first: 0, half/2, half/4, 3half/4, ...
int reversed_bits(int value, int half) {
  int reversed = 0;
  for (int bit = half / 2; bit >= 1; bit /= 2, value /= 2) reversed |= value % 2 * bit;
  return reversed;
}

}  // namespace

Result<Schedule> halving_doubling_all_reduce(const AlgorithmRequest& request) {
  const int ranks = request.ranks;
  SLUICE_TRY(check_request(request, Collective::all_reduce, powers_of_two(ranks)));
  const int half = power_of_two_within(ranks);
  const int extra = ranks - half;
  const bool accumulators = request.order == Order::canonical && half > 2;
  ScheduleBuilder builder("halving_doubling_all_reduce",
                          {Collective::all_reduce, ranks, /*chunks=*/half, 0, accumulators ? half : 0}, request.only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));

  for (int chunk = 0; chunk < half; ++chunk)
    for (Rank rank = 0; rank < extra; ++rank)
      builder.reduce(input(rank, chunk), input(half + rank, chunk), output(rank, chunk));

  const auto sum = [&](Rank rank, int chunk) { return accumulators ? scratch(rank, chunk) : output(rank, chunk); };
  halve(
      builder, half, half,
      [&](Rank rank, int chunk, int distance) {
        if (distance > 1) return sum(rank, chunk);
        return rank < extra ? output(rank, chunk) : input(rank, chunk);
      },
      [&](Rank rank, int chunk, int distance) {
        return 2 * distance == half ? output(rank, chunk) : sum(rank, chunk);
      });

  // A rank passes its chunks on in the order in which it got them: its own, then those of its farthest partner, ...
  for (int distance = half / 2; distance >= 1; distance /= 2)
    for (int i = 0; i < half / (2 * distance); ++i)
      for (Rank rank = 0; rank < half; ++rank) {
        const Rank partner = rank ^ distance;
        const int chunk = partner ^ reversed_bits(i, half);
        builder.copy(output(partner, chunk), output(rank, chunk));
      }

  for (int i = 0; i < half; ++i)
    for (Rank rank = 0; rank < extra; ++rank) {
      const int chunk = rank ^ reversed_bits(i, half);
      builder.copy(output(rank, chunk), output(half + rank, chunk));
    }
  return std::move(builder).build();
}

AlgorithmCost halving_doubling_all_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  const int half = power_of_two_within(ranks);
  const bool folded = half != ranks;
  const double share = (half - 1.0) / half;
  const int levels = levels_of_halving(half, half, folded) + levels_of_doubling(folded ? half : half / 2);
  return {1.0 * levels, (2 * share + folded) * bytes, 2 * (share + folded) * bytes};
}

Result<Schedule> recursive_halving_reduce_scatter(const AlgorithmRequest& request) {
  const int ranks = request.ranks;
  SLUICE_TRY(check_request(request, Collective::reduce_scatter, powers_of_two(ranks)));
  const int half = power_of_two_within(ranks);
  const int extra = ranks - half;
  ScheduleBuilder builder("recursive_halving_reduce_scatter",
                          {Collective::reduce_scatter, ranks, 1, 0, /*scratch=*/ranks > 2 ? ranks : 0}, request.only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));

  for (int block = 0; block < ranks; ++block)
    for (Rank rank = 0; rank < extra; ++rank)
      builder.reduce(input(rank, block), input(half + rank, block), scratch(rank, block));

  halve(
      builder, half, ranks,
      [&](Rank rank, int block, int distance) {
        return distance == 1 && rank >= extra ? input(rank, block) : scratch(rank, block);
      },
      // The last round goes to the owner at once, also to a rank from H on.
      [&](Rank rank, int block, int distance) {
        return 2 * distance == half ? output(block, 0) : scratch(rank, block);
      });
  return std::move(builder).build();
}

AlgorithmCost recursive_halving_reduce_scatter_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  const int half = power_of_two_within(ranks);
  const int extra = ranks - half;
  int sent_max = extra > 0 ? ranks : 0;  // blocks; a folded rank gives all of its own
  int summed_max = 0;
  for (Rank rank = 0; rank < half; ++rank) {
    int sent = rank < extra ? 1 : 0;
    int summed = rank < extra ? ranks : 0;
    for (int distance = 1; distance < half; distance *= 2) {
      sent += blocks_like(rank ^ distance, 2 * distance - 1, ranks);
      summed += blocks_like(rank, 2 * distance - 1, ranks);
    }
    sent_max = std::max(sent_max, sent);
    summed_max = std::max(summed_max, summed);
  }
  return {1.0 * levels_of_halving(half, ranks, extra > 0), sent_max * bytes / ranks, 2 * summed_max * bytes / ranks};
}

}  // namespace sluice
