#include "comm/algorithms/bruck.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "comm/algorithms/request.h"

namespace sluice {
namespace {

int lowest_bit(int value) { return value & -value; }
int highest_bit(int value) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(value))); }
int bits(int value) { return std::popcount(static_cast<unsigned>(value)); }

// A block on its way by `hop` is at the end where the output is the input of the block of distance P-hop. In place that one must
// have left before; otherwise the arrived block waits in scratch.
bool may_arrive(int hop, int ranks) { return lowest_bit(ranks - hop) < highest_bit(hop); }

// All ranks do the same, so the levels of one rank's blocks by `hop` are those of all.
int levels_of_all_to_all(int ranks) {
  std::vector<int> ready(static_cast<std::size_t>(ranks), 0);  // the level at which the next move may be
  std::vector<int> left(static_cast<std::size_t>(ranks), 0);   // the level of the first move
  int levels = 1;
  const auto index = [](int hop) { return static_cast<std::size_t>(hop); };
  for (int distance = 1; distance < ranks; distance *= 2) {
    int level = 0;
    int messages = 0;  // at that level
    for (int hop = distance; hop < ranks; ++hop) {
      if ((hop & distance) == 0) continue;
      const bool arrives = distance == highest_bit(hop) && may_arrive(hop, ranks);
      const int earliest = std::max({level, ready[index(hop)], arrives ? left[index(ranks - hop)] + 1 : 0});
      const int taken = earliest > level ? 0 : messages;
      level = taken == kMessagesPerLevel ? earliest + 1 : earliest;
      messages = taken == kMessagesPerLevel ? 1 : taken + 1;
      ready[index(hop)] = level + 1;
      if (distance == lowest_bit(hop)) left[index(hop)] = level;
      levels = std::max(levels, level + 1);
    }
  }
  for (int hop = 1; hop < ranks; ++hop)
    if (!may_arrive(hop, ranks)) levels = std::max({levels, ready[index(hop)] + 1, left[index(ranks - hop)] + 2});
  return levels;
}

}  // namespace

Result<Schedule> bruck_all_gather(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_gather, true));
  const int ranks = request.ranks;
  ScheduleBuilder builder("bruck_all_gather", {Collective::all_gather, ranks, 1, 0, 0}, request.only);
  for (Rank rank = 0; rank < ranks; ++rank) builder.copy(input(rank, 0), output(rank, rank));
  for (int distance = 1; distance < ranks; distance *= 2)
    for (int ahead = 0; ahead < distance && distance + ahead < ranks; ++ahead)
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Rank from = (rank + distance) % ranks;
        const int block = (from + ahead) % ranks;
        builder.copy(ahead == 0 ? input(from, 0) : output(from, block), output(rank, block));
      }
  return std::move(builder).build();
}

AlgorithmCost bruck_all_gather_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {1.0 * std::max(levels_of_doubling(std::max(1, power_of_two_from(ranks) / 4)),
                         levels_of_doubling(ranks - power_of_two_from(ranks) / 2)),
          (ranks - 1) * bytes / ranks, 0};
}

Result<Schedule> bruck_all_to_all(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_to_all, true));
  const int ranks = request.ranks;
  ScheduleBuilder builder("bruck_all_to_all",
                          {Collective::all_to_all, ranks, 1, 0, /*scratch=*/ranks > 1 ? 2 * ranks : 0}, request.only);
  const auto at = [&](int i) { return ((i % ranks) + ranks) % ranks; };
  for (Rank rank = 0; rank < ranks; ++rank) builder.copy(input(rank, rank), output(rank, rank));

  // The block from rank s to rank s + hop moves by 2^k in each round k whose bit is set in `hop`.
  const auto parked = [&](Rank rank, int hop, int moves) { return scratch(rank, (moves % 2) * ranks + hop); };
  for (int distance = 1; distance < ranks; distance *= 2) {
    for (int hop = distance; hop < ranks; ++hop) {
      if ((hop & distance) == 0) continue;
      const int moved = hop & (distance - 1);  // so far
      const bool arrives = distance == highest_bit(hop);
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Rank source = at(rank - moved - distance);  // whose block this is
        const Rank from = at(rank - distance);
        builder.copy(moved == 0 ? input(from, at(source + hop)) : parked(from, hop, bits(moved)),
                     arrives && may_arrive(hop, ranks) ? output(rank, source) : parked(rank, hop, bits(moved) + 1));
      }
    }
  }
  for (int hop = 1; hop < ranks; ++hop)
    for (Rank rank = 0; rank < ranks && !may_arrive(hop, ranks); ++rank)
      builder.copy(parked(rank, hop, bits(hop)), output(rank, at(rank - hop)));
  return std::move(builder).build();
}

AlgorithmCost bruck_all_to_all_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  int moves = 0;
  for (int hop = 1; hop < ranks; ++hop) moves += bits(hop);
  return {1.0 * levels_of_all_to_all(ranks), moves * bytes / ranks, 0};
}

}  // namespace sluice
