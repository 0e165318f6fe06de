#include "comm/tune/tune.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

namespace sluice {
namespace {

constexpr int kScaledMost = 2;  // times this many ranks, or the reverse

double model_seconds(const Algorithm& algorithm, int ranks, double bytes, const LinkModel& link) {
  const AlgorithmCost cost = algorithm.cost(ranks, bytes);
  const double seconds = cost.rounds * link.latency_seconds + cost.sent_bytes / link.bytes_per_second +
                         cost.combined_bytes / link.combine_bytes_per_second;
  return std::max(seconds, 1e-12);  // one rank costs nothing, and is divided by
}

const TimeCurve* find_curve(std::span<const TimeCurve> curves, const Algorithm& algorithm, int ranks) {
  for (const TimeCurve& one : curves)
    if (one.algorithm == &algorithm && one.ranks == ranks) return &one;
  return nullptr;
}

// The number of ranks that times are known for and that is nearest in proportion; 0: none is near enough.
int nearest_ranks(std::span<const TimeCurve> curves, int ranks) {
  const auto exact = [ranks](const TimeCurve& one) { return one.ranks == ranks; };
  if (std::ranges::any_of(curves, exact)) return ranks;
  int nearest = 0;
  const auto far = [ranks](int one) { return std::abs(std::log(static_cast<double>(one) / ranks)); };
  for (const TimeCurve& one : curves) {
    if (one.ranks > kScaledMost * ranks || ranks > kScaledMost * one.ranks) continue;
    if (nearest == 0 || far(one.ranks) < far(nearest)) nearest = one.ranks;
  }
  return nearest;
}

// Of those that are as good as the first, the one with the least predicted time comes first.
void prefer_by_model(std::vector<Prediction>& sorted) {
  if (sorted.empty() || sorted.front().source == TimeSource::predicted) return;
  const auto end = std::ranges::find_if(sorted, [&](const Prediction& one) {
    return one.source == TimeSource::predicted || one.seconds > kAsGood * sorted.front().seconds;
  });
  const auto first = std::min_element(
      sorted.begin(), end, [](const Prediction& a, const Prediction& b) { return a.model_seconds < b.model_seconds; });
  std::rotate(sorted.begin(), first, first + 1);
}

}  // namespace

std::string_view name(TimeSource source) {
  switch (source) {
    case TimeSource::measured: return "measured";
    case TimeSource::scaled: return "scaled";
    case TimeSource::predicted: return "predicted";
  }
  return "?";
}

double interpolate(std::span<const TimePoint> points, double bytes) {
  const auto above =
      std::ranges::find_if(points, [bytes](const TimePoint& one) { return static_cast<double>(one.bytes) >= bytes; });
  if (above == points.begin()) return above->seconds;
  const TimePoint& low = *(above - 1);
  const double low_bytes = static_cast<double>(low.bytes);
  if (above == points.end()) return low.seconds * bytes / low_bytes;
  const double part = std::log(bytes / low_bytes) / std::log(static_cast<double>(above->bytes) / low_bytes);
  return low.seconds * std::pow(above->seconds / low.seconds, part);
}

Status check_offer(const Algorithm& algorithm, const TuneRequest& request) {
  const std::string who =
      "algorithm '" + std::string(algorithm.name) + "' for " + std::string(name(request.collective));
  if (!algorithm.supports(request.ranks))
    return {Code::unsupported, who + " does not support " + std::to_string(request.ranks) + " ranks"};
  if (request.reduces && request.order == Order::canonical && !algorithm.supports_canonical(request.ranks))
    return {Code::unsupported,
            who + " does not offer the canonical order on " + std::to_string(request.ranks) + " ranks"};
  if (request.uneven && !algorithm.uneven)
    return {Code::unsupported, who + " relays blocks whose sizes it can't know; a v-form needs another one"};
  return {};
}

std::vector<Prediction> predict(const TuneRequest& request, const LinkModel& link) {
  std::span<const TimeCurve> curves;
  if (link.measures != nullptr) curves = link.measures->of(request.collective);
  const int nearest = nearest_ranks(curves, request.ranks);
  std::vector<Prediction> all;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.collective != request.collective || !check_offer(algorithm, request).ok()) continue;
    const double modelled = model_seconds(algorithm, request.ranks, request.bytes, link);
    const TimeCurve* curve = nearest == 0 ? nullptr : find_curve(curves, algorithm, nearest);
    if (curve == nullptr) {
      all.push_back({&algorithm, modelled, modelled, TimeSource::predicted, 0});
      continue;
    }
    const double seconds = interpolate(curve->points, request.bytes);
    if (nearest == request.ranks)
      all.push_back({&algorithm, seconds, modelled, TimeSource::measured, nearest});
    else
      all.push_back({&algorithm, seconds * modelled / model_seconds(algorithm, nearest, request.bytes, link), modelled,
                     TimeSource::scaled, nearest});
  }
  std::stable_sort(all.begin(), all.end(), [](const Prediction& a, const Prediction& b) {
    const bool a_predicted = a.source == TimeSource::predicted;
    const bool b_predicted = b.source == TimeSource::predicted;
    return a_predicted != b_predicted ? b_predicted : a.seconds < b.seconds;
  });
  prefer_by_model(all);
  return all;
}

const Algorithm* choose(const TuneRequest& request, const LinkModel& link) {
  const std::vector<Prediction> all = predict(request, link);
  return all.empty() ? nullptr : all.front().algorithm;
}

Result<std::string> forced_algorithm(std::string_view setting, Collective collective) {
  std::string forced;
  while (!setting.empty()) {
    const std::string_view one = setting.substr(0, setting.find(','));
    setting.remove_prefix(std::min(setting.size(), one.size() + 1));
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      forced = std::string(one);
      continue;
    }
    const auto wanted = parse_collective(one.substr(0, equals));
    if (!wanted)
      return Error{Code::invalid_argument, "setting algorithm (SLUICE_ALGORITHM) names the collective '" +
                                               std::string(one.substr(0, equals)) + "', which is unknown"};
    if (*wanted == collective) forced = std::string(one.substr(equals + 1));
  }
  return forced;
}

}  // namespace sluice
