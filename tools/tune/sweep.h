// Times algorithms on this machine: real ranks, forked for the purpose, over one kind of link.
//
//   Sample   barrier, then the operation several times over; a rank's time per operation, the slowest rank's counts. Cases of one
//            collective and size take turns, each round beginning with another one, and a round goes over all cases, so
//            that what disturbs the machine disturbs all alike. Of the samples the median.
//   Memory   plain, not windows; the same buffers every time, so they are as warm as the caches allow. float32, sum, root 0.
//   Threads  call it from the main thread, while there is no other: it forks.
#pragma once

#include <cstddef>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "comm/tune/machine_file.h"

namespace sluice::tools {

struct SweepCase {
  const Algorithm* algorithm = nullptr;
  std::size_t bytes = 0;  // as Algorithm::cost's argument; one that message_bytes gives
};

struct Sweep {
  LinkKind link = LinkKind::processes;
  int ranks = 2;
  Config config;                 // transport and tuning are set by the sweep
  std::vector<SweepCase> cases;  // those of one collective and size follow each other
  int samples = 5;
  double sample_seconds = 300e-6;  // an operation is repeated for about so long
  Order order = Order::fast;
  bool probe = false;  // measure the link too
};

struct SweepResult {
  std::vector<double> seconds;  // of each case
  double latency_seconds = 0;   // with probe: of a message of 8 bytes, one way
  double bytes_per_second = 0;  // with probe: of a message of kProbeBytes
};
inline constexpr std::size_t kProbeBytes = std::size_t{4} << 20;

// Errors: what the ranks met, the first of them; those of run_processes.
Result<SweepResult> run_sweep(const Sweep& sweep);

// What a call can move that comes nearest to `bytes` from above: whole elements, as many for each rank.
std::size_t message_bytes(Collective collective, int ranks, std::size_t bytes);

// What the combine kernel reads when it sums two sources that the caches hold.
double measure_combine_rate();

double median(std::vector<double> values);  // at least one

}  // namespace sluice::tools
