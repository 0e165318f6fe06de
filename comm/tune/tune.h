// The tuner: predicts what each algorithm costs from the link's parameters and picks the cheapest.
//
//   Model    seconds = rounds * latency + sent bytes / bandwidth + combined bytes / combine rate. (Hockney's model with a term
//            for the reduction; Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
//            MPICH", IJHPCA 19(1), 2005.)
//   Alike    the choice is a function of what all ranks know alike: collective, ranks, order, bytes, the weakest link.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/algorithms/algorithms.h"

namespace sluice {

struct LinkModel {
  double latency_seconds = 1e-6;          // of one message, end to end
  double bytes_per_second = 5e9;          // of one rank sending
  double combine_bytes_per_second = 8e9;  // read by the combine kernel
};

struct TuneRequest {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Order order = Order::fast;
  bool uneven = false;
  bool reduces = true;  // the form sums
  double bytes = 0;     // as Algorithm::cost's argument
};

struct Prediction {
  const Algorithm* algorithm = nullptr;
  double seconds = 0;
};

// May this algorithm be used for the request? If not: why, for people.
Status check_offer(const Algorithm& algorithm, const TuneRequest& request);

// All algorithms that may be used, cheapest first. Never empty for a valid request.
std::vector<Prediction> predict(const TuneRequest& request, const LinkModel& link);
const Algorithm* choose(const TuneRequest& request, const LinkModel& link);

// The name that a setting `NAME` or `COLLECTIVE=NAME,...` forces for a collective; empty: none.
Result<std::string> forced_algorithm(std::string_view setting, Collective collective);

}  // namespace sluice
