// The list of algorithms. Adding one touches its own pair of files, its test, one line in algorithms.cpp and one section
// in docs/algorithms.md.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "comm/schedule/schedule.h"

namespace sluice {

// What a builder is asked for.
struct AlgorithmRequest {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Rank root = 0;
  Order order = Order::fast;
  std::optional<Rank> only;  // the one-rank reading
};

// What an operation costs, for the tuner: time = rounds * latency + sent_bytes / bandwidth + combined_bytes / combine rate.
// Each figure is that of the rank that has most of it. A long message is cut into slices that follow one another through the
// rounds, so `rounds` is paid once a message, not once a slice.
struct AlgorithmCost {
  double rounds = 0;          // levels of the schedule; over 64 ranks up to 3% too many
  double sent_bytes = 0;      // to other ranks, by the busiest rank
  double combined_bytes = 0;  // read by its steps of several sources
  bool operator==(const AlgorithmCost&) const = default;
};

struct Algorithm {
  std::string_view name;  // "ring"
  Collective collective;
  bool uneven;  // right also when blocks have different extents that only their two ends know (v-forms)
  bool (*supports)(int ranks);
  bool (*supports_canonical)(
      int ranks);  // offers Order::canonical (forms that do not sum: as `supports`); Order::fast always
  Result<Schedule> (*build)(const AlgorithmRequest& request);
  // `ranks` >= 1. `bytes`: the whole message of one rank (all_reduce, broadcast, reduce: count * size; the forms with blocks: the sum of all blocks).
  AlgorithmCost (*cost)(int ranks, double bytes);
};

std::span<const Algorithm> all_algorithms();
const Algorithm* find_algorithm(Collective collective, std::string_view name);

}  // namespace sluice
