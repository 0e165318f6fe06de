// The command line of the benchmark programs: nccl-tests' options and a few of our own.
//
//   Refused  what asks for a GPU (-G, -D): by name, with the reason.
//   Noted    what has nothing to act on here (-y, -p, -x, -V, -R 1, -o and -r where the collective has none): accepted, and
//            said in a line of the header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/types.h"
#include "tools/perf/background.h"
#include "tools/perf/perf_test.h"

namespace sluice::tools {

enum class Average : std::uint8_t { rank0, mean, least, most };  // -a

struct Options {
  int threads = 1;    // -t: of each process
  int processes = 1;  // -g: forked on this host by each launched process
  std::size_t min_bytes = std::size_t{32} << 20;
  std::size_t max_bytes = std::size_t{32} << 20;
  std::size_t step_bytes = std::size_t{1} << 20;
  int step_factor = 0;  // 0: by step_bytes
  int iterations = 20;  // 0: check only
  int warmup = 1;
  int aggregate = 1;
  int cycles = 1;  // 0: for ever
  int checks = 1;
  std::vector<ReduceOp> operations{ReduceOp::sum};
  bool all_operations = false;  // pairs that do not exist are skipped; named ones are refused
  std::vector<DataType> types{DataType::float32};
  std::optional<Rank> root = 0;  // empty: all
  int blocking = 0;
  Average average = Average::mean;
  std::optional<Nanoseconds> timeout;
  bool cpu_time = false;
  bool timestamps = false;
  bool windows = false;  // -R 2
  bool memory = false;
  bool per_iteration = false;
  int skip = 0;  // -K: iterations left out of the statistics
  std::size_t unalign = 0;
  std::string output_file;

  std::optional<Order> order;
  bool order_sensitive = false;
  std::string algorithm;  // a name, "all", or empty: the tuner's choice
  std::size_t sweep = 0;  // random combinations instead of the table
  std::uint64_t sweep_seed = 1;

  std::optional<Lane> lane;            // --lane: of what is measured
  std::vector<BackgroundRule> beside;  // --beside
  std::optional<Nanoseconds> gap;      // --gap: between iterations
  bool competes() const { return lane || !beside.empty(); }

  bool help = false;
  std::string help_text;
  std::vector<std::string> notes;
};

inline constexpr int kThreadsMax = 256;
inline constexpr std::size_t kUnalignMax = 63;

// Errors: invalid_argument and unsupported, with the option, its value and what is allowed.
Result<Options> parse_options(const std::vector<std::string>& arguments, const PerfTest& test);

// nccl-tests' words: "float", "half", "mulsum".
std::string column_word(DataType type);
std::string column_word(ReduceOp op);

// The sizes of the table, in bytes. After 0 comes one element: a factor does not lead away from 0.
std::vector<std::size_t> table_sizes(const Options& options, std::size_t element_bytes);

}  // namespace sluice::tools
