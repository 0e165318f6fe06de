#include "comm/trace/metrics.h"

#include <fmt/format.h>

#include <array>

namespace sluice::detail {
namespace {

struct Metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  double (*value)(const LaneCounters& lane);
};

constexpr std::array<Metric, 7> kMetrics{{
    {"sluice_lane_operations_total", "counter", "Operations that ended on the lane.",
     [](const LaneCounters& lane) { return static_cast<double>(lane.operations); }},
    {"sluice_lane_sent_bytes_total", "counter", "Payload bytes that this rank sent on the lane.",
     [](const LaneCounters& lane) { return static_cast<double>(lane.bytes_sent); }},
    {"sluice_lane_busy_seconds_total", "counter", "Time in which the lane had an operation under way.",
     [](const LaneCounters& lane) { return lane.seconds_busy; }},
    {"sluice_lane_blocked_seconds_total", "counter", "Of it, time in which nothing could move on this rank.",
     [](const LaneCounters& lane) { return lane.seconds_blocked; }},
    {"sluice_lane_queued_total", "counter", "Operations that did not begin when they were posted.",
     [](const LaneCounters& lane) { return static_cast<double>(lane.queued); }},
    {"sluice_lane_queued_p50_seconds", "gauge", "Median of the time from post to beginning, of these.",
     [](const LaneCounters& lane) { return lane.queued_p50; }},
    {"sluice_lane_queued_p99_seconds", "gauge", "99th percentile of it.",
     [](const LaneCounters& lane) { return lane.queued_p99; }},
}};

}  // namespace

// A lane's name needs no quoting: see Lane.
std::string to_prometheus(std::span<const LaneCounters> lanes, Rank world_rank) {
  std::string out;
  for (const Metric& metric : kMetrics) {
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name, metric.type);
    for (const LaneCounters& lane : lanes)
      out += fmt::format("{}{{rank=\"{}\",lane=\"{}\",priority=\"{}\"}} {:.9g}\n", metric.name, world_rank, lane.lane,
                         name(lane.priority), metric.value(lane));
  }
  return out;
}

}  // namespace sluice::detail
