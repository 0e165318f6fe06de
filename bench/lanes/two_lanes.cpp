#include "bench/lanes/two_lanes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace two_lanes {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// As our own programs take it.
double percentile(const std::vector<double>& sorted, std::size_t permille) {
  const std::size_t rank = (sorted.size() * permille + 999) / 1000;
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace

Task parse(int argc, char** argv, const char* usage) {
  Task task;
  const bool all_reduce = argc > 1 && std::strcmp(argv[1], "all_reduce") == 0;
  const bool known = all_reduce || (argc > 1 && std::strcmp(argv[1], "alltoall") == 0);
  if (argc < 1 + kTaskArguments || !known) {
    std::fprintf(stderr, "usage: %s all_reduce|alltoall URGENT_BYTES BULK_BYTES ITERATIONS GAP_US %s\n", argv[0],
                 usage);
    std::exit(2);
  }
  task.all_reduce = all_reduce;
  task.urgent_bytes = std::strtoull(argv[2], nullptr, 10);
  task.bulk_bytes = std::strtoull(argv[3], nullptr, 10);
  task.iterations = std::max(1, std::atoi(argv[4]));
  task.gap_us = std::max(0, std::atoi(argv[5]));
  return task;
}

void measure(Library& library, const Task& task) {
  for (int i = 0; i < 10; ++i) library.urgent();
  if (task.bulk_bytes != 0) library.start_bulk();
  std::vector<double> times;
  for (int i = 0; i < task.iterations; ++i) {
    library.pause(task.gap_us);
    library.barrier();
    const double begin = now();
    library.urgent();
    times.push_back(now() - begin);
  }
  const BulkCount bulk = task.bulk_bytes != 0 ? library.stop_bulk() : BulkCount{};
  library.max(times);
  if (library.rank() != 0) return;
  std::sort(times.begin(), times.end());
  std::printf(
      "{\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"bulk_operations\": %d, \"bulk_bytes_per_second\": "
      "%.0f}\n",
      times[times.size() / 2] * 1e6, percentile(times, 990) * 1e6, percentile(times, 999) * 1e6, bulk.operations,
      bulk.operations == 0 ? 0.0 : bulk.operations * static_cast<double>(task.bulk_bytes) / bulk.seconds);
}

}  // namespace two_lanes
