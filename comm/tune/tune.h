// The tuner: weighs what each algorithm costs, by measured times where there are some and by the link's parameters elsewhere,
// and picks the cheapest.
//
//   Model    seconds = rounds * latency + sent bytes / bandwidth + combined bytes / combine rate. (Hockney's model with a term
//            for the reduction; Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in
//            MPICH", IJHPCA 19(1), 2005.)
//   Measured between two sizes: on a straight line in the logarithms; below the least: the least's; above the largest: in
//            proportion to bytes. For a number of ranks without times: the model's, corrected by what the nearest number
//            that has some showed, if that is at most twice or half as many.
//   As good  times within kAsGood of the least are equal, for they repeat no better: of these the model decides.
//   Mixed    an algorithm without times is never preferred to one with: a prediction is not compared with a measurement.
//   Alike    the choice is a function of what all ranks know alike: collective, ranks, order, bytes, the weakest link, and
//            measured times only where all ranks hold the same (tuned_link.h).
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/algorithms/algorithms.h"
#include "comm/tune/machine_file.h"

namespace sluice {

struct LinkModel {
  double latency_seconds = 1e-6;  // of one message, end to end
  double bytes_per_second = 5e9;  // of one rank sending
  // Read by the combine kernel. By this one two_shot overtakes one_shot at 15 KiB in shared memory, as 2 ranks of an EPYC 7003 do.
  double combine_bytes_per_second = 6e10;
  const LinkMeasures* measures = nullptr;  // borrowed; null: nothing was measured
};

struct TuneRequest {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  Order order = Order::fast;
  bool uneven = false;
  bool reduces = true;  // the form sums
  double bytes = 0;     // as Algorithm::cost's argument
};

// Where a time comes from: `measured` for so many ranks, `scaled` from the nearest number of ranks, `predicted` by the model.
enum class TimeSource : std::uint8_t { measured, scaled, predicted };
std::string_view name(TimeSource source);

struct Prediction {
  const Algorithm* algorithm = nullptr;
  double seconds = 0;
  double model_seconds = 0;
  TimeSource source = TimeSource::predicted;
  int measured_ranks = 0;  // whose times were used; 0: predicted
};

inline constexpr double kAsGood = 1.05;

// May this algorithm be used for the request? If not: why, for people.
Status check_offer(const Algorithm& algorithm, const TuneRequest& request);

// All algorithms that may be used, the one to choose first. Never empty for a valid request.
std::vector<Prediction> predict(const TuneRequest& request, const LinkModel& link);
const Algorithm* choose(const TuneRequest& request, const LinkModel& link);

// Of a curve at `bytes`, which may be 0.
double interpolate(std::span<const TimePoint> points, double bytes);

// The name that a setting `NAME` or `COLLECTIVE=NAME,...` forces for a collective; empty: none.
Result<std::string> forced_algorithm(std::string_view setting, Collective collective);

}  // namespace sluice
