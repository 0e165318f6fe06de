#include "comm/algorithms/request.h"

#include <bit>
#include <string>

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

}  // namespace sluice
