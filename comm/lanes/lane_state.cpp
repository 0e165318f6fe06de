#include "comm/lanes/lane_state.h"

namespace sluice::detail {
namespace {

constexpr Nanoseconds kCeilingBurst = std::chrono::milliseconds(2);
constexpr std::uint64_t kBurstMin = std::uint64_t{1} << 16;

std::uint64_t burst_of(std::uint64_t rate) {
  return std::max(kBurstMin, static_cast<std::uint64_t>(static_cast<double>(rate) * 1e-9 *
                                                        static_cast<double>(kCeilingBurst.count())));
}

}  // namespace

LaneRules rules_of(const Lane& lane, std::uint32_t number) {
  return {.number = number,
          .priority = static_cast<std::uint8_t>(*lane.priority),
          .weight = *lane.weight,
          .min_rate = std::max(*lane.bytes_per_second_min, kLaneFloor),
          .max_rate = *lane.bytes_per_second_max,
          .in_flight = *lane.in_flight_bytes};
}

LaneState::LaneState(const Lane& complete_lane, std::uint32_t number)
    : lane(complete_lane),
      rules(rules_of(complete_lane, number)),
      pinned(!lane.cores->empty()),
      plain(!pinned && rules.max_rate == 0 && *lane.copied_per_second_max == 0),
      floor(rules.min_rate, burst_of(rules.min_rate)) {
  if (rules.max_rate != 0) ceiling.emplace(rules.max_rate, burst_of(rules.max_rate));
  if (const std::uint64_t rate = *lane.copied_per_second_max; rate != 0) copies.emplace(rate, burst_of(rate));
}

}  // namespace sluice::detail
