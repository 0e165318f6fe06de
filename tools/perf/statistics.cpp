#include "tools/perf/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

namespace sluice::tools {
namespace {

// The least value that at least `permille` of the sorted ones do not exceed.
double percentile(const std::vector<double>& sorted, std::size_t permille) {
  const std::size_t rank = (sorted.size() * permille + 999) / 1000;
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

Statistics statistics_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.least = values.front(),
          .most = values.back(),
          .mean = mean,
          .median = values[values.size() / 2],
          .percentile_95 = percentile(values, 950),
          .percentile_99 = percentile(values, 990),
          .percentile_999 = percentile(values, 999),
          .deviation = std::sqrt(squares / count)};
}

}  // namespace sluice::tools
