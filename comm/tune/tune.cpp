#include "comm/tune/tune.h"

#include <algorithm>
#include <string>

namespace sluice {

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
  std::vector<Prediction> all;
  for (const Algorithm& algorithm : all_algorithms()) {
    if (algorithm.collective != request.collective || !check_offer(algorithm, request).ok()) continue;
    const AlgorithmCost cost = algorithm.cost(request.ranks, request.bytes);
    all.push_back({&algorithm, cost.rounds * link.latency_seconds + cost.sent_bytes / link.bytes_per_second +
                                   cost.combined_bytes / link.combine_bytes_per_second});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Prediction& a, const Prediction& b) { return a.seconds < b.seconds; });
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
