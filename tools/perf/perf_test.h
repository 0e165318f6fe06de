// What one benchmark program measures: a descriptor per collective. The driver knows nothing of collectives but this.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "comm/communicator.h"
#include "comm/schedule/schedule.h"
#include "tools/perf/traffic.h"

namespace sluice::tools {

// One line of the table: what is run on every rank. Counts in elements.
struct PerfCase {
  DataType type = DataType::float32;
  Reduction reduction;
  Rank root = 0;
  int ranks = 1;
  std::size_t bytes = 0;  // the size asked for on the command line
  std::size_t count = 0;  // the count that the call is given
  bool in_place = false;
  const Traffic* traffic = nullptr;  // alltoallv only
};

// Extents of one rank's buffers, in elements, and where they lie when both are one memory.
struct Extents {
  std::size_t send = 0;
  std::size_t receive = 0;
  std::size_t send_at = 0;     // in place: offset of what is sent
  std::size_t receive_at = 0;  // in place: offset of what is received
};

// A run of received elements and where they come from.
struct Piece {
  std::size_t at = 0;  // in the received buffer
  std::size_t count = 0;
  std::optional<Rank> source;  // empty: the reduction over all ranks
  std::size_t source_at = 0;   // first element of the source's (of every rank's) send buffer
};

struct PerfCall {
  Communicator* communicator = nullptr;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  const CallOptions* options = nullptr;
};

struct PerfTest {
  std::string_view name;                 // "all_reduce": the program is all_reduce_perf
  std::string_view title;                // "AllReduce"
  std::optional<Collective> collective;  // empty: not made of algorithms
  bool reduces = false;
  bool rooted = false;
  bool in_place = true;     // has an in-place form
  bool by_traffic = false;  // sizes come from a Traffic
  // Count that makes a message of `bytes` bytes, as nccl-tests cuts it.
  std::size_t (*count)(std::size_t bytes, std::size_t element_bytes, int ranks) = nullptr;
  Extents (*extents)(const PerfCase& one, Rank rank) = nullptr;
  std::vector<Piece> (*pieces)(const PerfCase& one, Rank rank) = nullptr;
  void (*post)(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) = nullptr;
  // Bytes that the algorithm bandwidth counts, and busbw / algbw.
  std::size_t (*algorithm_bytes)(const PerfCase& one) = nullptr;
  double (*bus_factor)(int ranks) = nullptr;
};

std::span<const PerfTest> all_perf_tests();
const PerfTest& perf_test(std::string_view name);  // of a name that exists

}  // namespace sluice::tools
