// What -I shows of the iterations' times, with the percentile as nccl-tests takes it.
#pragma once

#include <vector>

namespace sluice::tools {

struct Statistics {
  double least = 0;
  double most = 0;
  double mean = 0;
  double median = 0;
  double percentile_95 = 0;
  double percentile_99 = 0;
  double percentile_999 = 0;  // 99.9
  double deviation = 0;       // standard, of the population
  double variation_percent() const { return mean > 0 ? 100 * deviation / mean : 0; }
};

// Of at least one value.
Statistics statistics_of(std::vector<double> values);

}  // namespace sluice::tools
