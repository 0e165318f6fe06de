// A lane of one runtime: its rules, and what the engine keeps of it. All communicators that name this lane share one.
//
//   Threads  under the owner token; count and lane from any.
#pragma once

#include <algorithm>
#include <optional>

#include "comm/lanes/lane.h"
#include "comm/lanes/lane_count.h"
#include "transport/lane_rules.h"
#include "transport/transport.h"

namespace sluice::detail {

// Of a complete lane. `number`: the lane's in its runtime.
LaneRules rules_of(const Lane& lane, std::uint32_t number);

struct LaneState {
  LaneState(const Lane& complete_lane, std::uint32_t number);

  // A limit holds it back, for so long.
  bool held(Nanoseconds now) { return (ceiling && !ceiling->any(now)) || (copies && !copies->any(now)); }
  Nanoseconds wait(Nanoseconds now) {
    const auto of = [now](std::optional<TokenBucket>& one) { return one ? one->wait(now) : Nanoseconds(0); };
    return std::max(of(ceiling), of(copies));
  }
  void charge(std::uint64_t bytes_sent, std::uint64_t bytes_moved, Nanoseconds now) {
    share.charge(bytes_moved, rules.weight);
    floor.spend_of_guarantee(bytes_moved, now);
    if (ceiling) ceiling->spend(bytes_sent, now);
    if (copies) copies->spend(bytes_moved, now);
  }

  const Lane lane;
  const LaneRules rules;
  const bool pinned;  // to cores
  const bool plain;   // neither pinned nor limited
  LaneShare share;
  TokenBucket floor;
  std::optional<TokenBucket> ceiling;
  std::optional<TokenBucket> copies;
  LaneCount count;
};

}  // namespace sluice::detail
