#include "comm/algorithms/request.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

namespace sluice {

Status check_request(const AlgorithmRequest& request, Collective collective, bool keeps_canonical_order) {
  if (request.collective != collective)
    return {Code::invalid_argument, "a request for " + std::string(name(request.collective)) +
                                        " went to a builder of " + std::string(name(collective))};
  if (request.ranks < 1 || request.ranks > kRanksMax)
    return {Code::invalid_argument,
            "ranks " + std::to_string(request.ranks) + " is not in 1.." + std::to_string(kRanksMax)};
  const auto outside = [&](Rank rank) { return rank < 0 || rank >= request.ranks; };
  const std::string range = " is not in 0.." + std::to_string(request.ranks - 1);
  if (is_rooted(collective) && outside(request.root))
    return {Code::invalid_argument, "root " + std::to_string(request.root) + range};
  if (request.only && outside(*request.only))
    return {Code::invalid_argument, "rank " + std::to_string(*request.only) + range};
  if (request.order == Order::canonical && is_reduction(collective) && !keeps_canonical_order)
    return {Code::unsupported, "this algorithm of " + std::string(name(collective)) +
                                   " does not keep the canonical order of sums for " + std::to_string(request.ranks) +
                                   " ranks; choose another or order fast"};
  return {};
}

bool is_power_of_two(int ranks) { return std::has_single_bit(static_cast<unsigned>(ranks)); }
int power_of_two_within(int ranks) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))); }
int power_of_two_from(int ranks) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks))); }
int log2_up(int ranks) { return std::bit_width(static_cast<unsigned>(ranks) - 1); }
int levels_of(int messages) { return (messages + kMessagesPerLevel - 1) / kMessagesPerLevel; }

int levels_of_doubling(int blocks) {
  std::vector<int> level(static_cast<std::size_t>(blocks), 0);  // at which block i goes along its pair
  for (std::size_t i = 1; i < level.size(); ++i) {
    const int came = level[i - std::bit_floor(i)] + 1;
    const bool full = i >= kMessagesPerLevel && level[i - kMessagesPerLevel] == level[i - 1];
    level[i] = std::max(came, level[i - 1] + (full ? 1 : 0));
  }
  return level.back() + 1;
}

}  // namespace sluice
