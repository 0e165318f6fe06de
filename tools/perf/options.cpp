#include "tools/perf/options.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/config.h"

namespace sluice::tools {
namespace {

// What the user wrote; absent options keep the default. Strings, so that every message comes from here.
struct Words {
  std::optional<std::string> threads, processes, min_bytes, max_bytes, step_bytes, step_factor, iterations, warmup,
      aggregate, cycles, parallel_init, checks, operation, type, root, blocking, stream_null, timeout, graphs, cpu_time,
      timestamps, output_file, average, local_register, cta_policy, device_implementation, device_cta_count, memory,
      unalign, per_iteration, skip, order, algorithm, sweep, sweep_seed, lane, gap;
  std::vector<std::string> beside;
  bool order_sensitive = false;
};

struct OptionRow {
  const char* names;
  std::optional<std::string> Words::*word;
  const char* help;
};

constexpr OptionRow kRows[] = {
    {"-t,--nthreads", &Words::threads, "threads of each process, a rank each (1)"},
    {"-g,--ngpus", &Words::processes, "processes forked on this host (1); ranks = launched processes x -g x -t"},
    {"-b,--minbytes", &Words::min_bytes, "first size; K, M, G are binary (32M)"},
    {"-e,--maxbytes", &Words::max_bytes, "last size (32M)"},
    {"-i,--stepbytes", &Words::step_bytes, "what is added from size to size (1M)"},
    {"-f,--stepfactor", &Words::step_factor, "what is multiplied from size to size, instead of -i"},
    {"-n,--iters", &Words::iterations, "timed iterations; 0: check only (20)"},
    {"-w,--warmup_iters", &Words::warmup, "untimed iterations of every size before the table (1)"},
    {"-m,--agg_iters", &Words::aggregate, "operations posted together in an iteration (1)"},
    {"-N,--run_cycles", &Words::cycles, "times that the table is run; 0: for ever (1)"},
    {"-p,--parallel_init", &Words::parallel_init, "no effect: ranks always join in parallel"},
    {"-c,--check", &Words::checks, "checked iterations after the timing; 0: none (1)"},
    {"-o,--op", &Words::operation, "sum prod min max avg mulsum band bor bxor, or all (sum)"},
    {"-d,--datatype", &Words::type,
     "int8 uint8 int32 uint32 int64 uint64 half float double bfloat16 f8e4m3 f8e5m2, or all (float)"},
    {"-r,--root", &Words::root, "root rank, or all (0)"},
    {"-z,--blocking", &Words::blocking, "1: barrier after each iteration; 0, 2, 3: none (0)"},
    {"-y,--stream_null", &Words::stream_null, "no effect: there are no streams on a CPU"},
    {"-T,--timeout", &Words::timeout, "seconds without progress after which the test ends with an error"},
    {"-G,--cudagraph", &Words::graphs, "only 0: there are no graphs on a CPU"},
    {"-C,--report_cputime", &Words::cpu_time, "1: report the time spent in posting (0)"},
    {"-S,--report_timestamps", &Words::timestamps, "1: end each line with the time of day (0)"},
    {"-J,--output_file", &Words::output_file, "also write JSON to this file, or to FILE.N when it exists"},
    {"-a,--average", &Words::average, "time over ranks: 0 rank 0, 1 mean, 2 least, 3 most (1)"},
    {"-R,--local_register", &Words::local_register, "0, 1: plain memory; 2: windows (0)"},
    {"-x,--cta_policy", &Words::cta_policy, "no effect: there are no CTAs on a CPU"},
    {"-D,--device_implementation", &Words::device_implementation, "only 0: there are no device kernels on a CPU"},
    {"-V,--device_cta_count", &Words::device_cta_count, "no effect: there are no CTAs on a CPU"},
    {"-M,--memory_report", &Words::memory, "1: report memory at the end (0)"},
    {"-u,--unalign", &Words::unalign, "bytes added to every buffer's address, up to 63 (0)"},
    {"-I,--per_iter_timing", &Words::per_iteration,
     "1: least, most, 99th percentile and variation of the iterations (0)"},
    {"-K,--iter_skip", &Words::skip, "iterations left out of those statistics (0)"},
    {"--order", &Words::order, "fast or canonical: the order class asked of reductions"},
    {"--algorithm", &Words::algorithm, "forces one by name, or runs all that the collective has"},
    {"--sweep", &Words::sweep,
     "N random combinations of type, operation, size, root, place and alignment, checked only"},
    {"--sweep-seed", &Words::sweep_seed, "seed of --sweep (1)"},
    {"--lane", &Words::lane,
     "NAME[:PRIORITY[:WEIGHT]][:min=RATE][:max=RATE][:flight=BYTES][:copy=RATE][:cores=CORES]: runs on this lane and "
     "shows p50, p99, p99.9"},
    {"--gap", &Words::gap, "pause before each iteration, not timed: 5ms (0)"},
};

Error bad(std::string_view option, std::string_view value, std::string_view allowed) {
  return {Code::invalid_argument,
          std::string(option) + " is '" + std::string(value) + "', but must be " + std::string(allowed)};
}

Result<std::int64_t> whole(std::string_view option, const std::string& text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least || value > most)
    return bad(option, text, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

template <typename Number>
Status take(Number& target, const std::optional<std::string>& word, std::string_view option, std::int64_t least,
            std::int64_t most) {
  if (!word) return {};
  SLUICE_TRY_ASSIGN(const std::int64_t value, whole(option, *word, least, most));
  target = static_cast<Number>(value);
  return {};
}

Status take_flag(bool& target, const std::optional<std::string>& word, std::string_view option) {
  int value = target ? 1 : 0;
  SLUICE_TRY(take(value, word, option, 0, 1));
  target = value != 0;
  return {};
}

Status take_bytes(std::size_t& target, const std::optional<std::string>& word, std::string_view option) {
  if (!word) return {};
  const auto value = parse_bytes(*word);
  if (!value.ok()) return bad(option, *word, "a size such as 8, 64K, 1.5M or 2G");
  target = *value;
  return {};
}

Status take_sizes(Options& options, const Words& words) {
  SLUICE_TRY(take_bytes(options.min_bytes, words.min_bytes, "-b"));
  SLUICE_TRY(take_bytes(options.max_bytes, words.max_bytes, "-e"));
  SLUICE_TRY(take_bytes(options.step_bytes, words.step_bytes, "-i"));
  SLUICE_TRY(take(options.step_factor, words.step_factor, "-f", 2, 1 << 20));
  // One border alone moves the other one's default.
  if (!words.max_bytes) options.max_bytes = std::max(options.max_bytes, options.min_bytes);
  if (!words.min_bytes) options.min_bytes = std::min(options.max_bytes, options.min_bytes);
  if (options.min_bytes > options.max_bytes)
    return bad("-b", format_bytes(options.min_bytes), "at most -e, which is " + format_bytes(options.max_bytes));
  if (options.step_factor == 0 && options.step_bytes == 0)
    return bad("-i", "0", "1 or more: the sizes would never end");
  return {};
}

Status take_counts(Options& options, const Words& words) {
  constexpr std::int64_t kMost = 1'000'000'000;
  SLUICE_TRY(take(options.threads, words.threads, "-t", 1, kThreadsMax));
  SLUICE_TRY(take(options.processes, words.processes, "-g", 1, kThreadsMax));
  SLUICE_TRY(take(options.iterations, words.iterations, "-n", 0, kMost));
  SLUICE_TRY(take(options.warmup, words.warmup, "-w", 0, kMost));
  SLUICE_TRY(take(options.aggregate, words.aggregate, "-m", 1, 1024));
  SLUICE_TRY(take(options.cycles, words.cycles, "-N", 0, kMost));
  SLUICE_TRY(take(options.checks, words.checks, "-c", 0, kMost));
  SLUICE_TRY(take(options.unalign, words.unalign, "-u", 0, kUnalignMax));
  SLUICE_TRY(take(options.skip, words.skip, "-K", 0, kMost));
  SLUICE_TRY(take(options.sweep, words.sweep, "--sweep", 0, kMost));
  SLUICE_TRY(take(options.sweep_seed, words.sweep_seed, "--sweep-seed", 0, INT64_MAX));
  if (options.per_iteration && options.iterations > 0 && options.skip >= options.iterations)
    return bad("-K", std::to_string(options.skip), "below -n, which is " + std::to_string(options.iterations));
  return {};
}

Status take_operations(Options& options, const Words& words, const PerfTest& test) {
  if (words.type && *words.type == "all") {
    options.types.assign(all_data_types().begin(), all_data_types().end());
  } else if (words.type) {
    const auto type = parse_data_type(*words.type);
    if (!type) return bad("-d", *words.type, "a type such as float, half or int32 (--help lists them), or all");
    options.types = {*type};
  }
  if (words.operation && *words.operation == "all") {
    options.operations.assign(all_reduce_ops().begin(), all_reduce_ops().end());
    options.all_operations = true;
  } else if (words.operation) {
    const auto op = parse_reduce_op(*words.operation);
    if (!op) return bad("-o", *words.operation, "one of sum prod min max avg mulsum band bor bxor, or all");
    options.operations = {*op};
  }
  if (!test.reduces) {
    if (words.operation) options.notes.push_back("-o has no effect: " + std::string(test.title) + " does not reduce");
    options.operations = {ReduceOp::sum};
  } else if (!options.all_operations && options.types.size() == 1) {
    SLUICE_TRY(check_pair(options.types[0], options.operations[0]));
  }
  return {};
}

Status take_root(Options& options, const Words& words, const PerfTest& test) {
  if (!words.root) return {};
  if (!test.rooted) options.notes.push_back("-r has no effect: " + std::string(test.title) + " has no root");
  if (*words.root == "all") {
    options.root = std::nullopt;
    return {};
  }
  Rank root = 0;
  SLUICE_TRY(take(root, words.root, "-r", 0, kRanksMax - 1));
  options.root = root;
  return {};
}

Status take_order(Options& options, const Words& words, const PerfTest& test) {
  if (words.order) {
    if (*words.order != "fast" && *words.order != "canonical") return bad("--order", *words.order, "fast or canonical");
    options.order = *words.order == "fast" ? Order::fast : Order::canonical;
  }
  options.order_sensitive = words.order_sensitive;
  if (!test.reduces && (words.order || words.order_sensitive))
    options.notes.push_back("--order and --order-sensitive have no effect: " + std::string(test.title) +
                            " does not reduce");
  options.algorithm = words.algorithm.value_or("");
  if (!options.algorithm.empty() && !test.collective)
    return {Code::unsupported, "--algorithm: " + std::string(test.title) + " is not made of algorithms"};
  return {};
}

// What is measured, and what has no meaning here.
Status take_measures(Options& options, const Words& words) {
  int average = 1;
  SLUICE_TRY(take(average, words.average, "-a", 0, 3));
  options.average = static_cast<Average>(average);
  SLUICE_TRY(take_flag(options.cpu_time, words.cpu_time, "-C"));
  SLUICE_TRY(take_flag(options.timestamps, words.timestamps, "-S"));
  SLUICE_TRY(take_flag(options.memory, words.memory, "-M"));
  SLUICE_TRY(take_flag(options.per_iteration, words.per_iteration, "-I"));
  SLUICE_TRY(take(options.blocking, words.blocking, "-z", 0, 3));
  std::int64_t seconds = 0;
  SLUICE_TRY(take(seconds, words.timeout, "-T", 0, 1'000'000'000));
  if (seconds > 0) options.timeout = std::chrono::seconds(seconds);
  int registration = 0;
  SLUICE_TRY(take(registration, words.local_register, "-R", 0, 2));
  options.windows = registration == 2;
  if (registration == 1) options.notes.emplace_back("-R 1 is as -R 0: plain memory needs no registration");
  options.output_file = words.output_file.value_or("");
  return {};
}

Status take_gpu_options(Options& options, const Words& words) {
  if (words.graphs && *words.graphs != "0")
    return {Code::unsupported, "-G " + *words.graphs + ": there are no CUDA graphs on a CPU; leave it out"};
  if (words.device_implementation && *words.device_implementation != "0")
    return {Code::unsupported,
            "-D " + *words.device_implementation + ": there are no device kernels on a CPU; leave it out"};
  if (words.stream_null) options.notes.emplace_back("-y has no effect: there are no streams on a CPU");
  if (words.parallel_init) options.notes.emplace_back("-p has no effect: ranks always join in parallel");
  if (words.cta_policy) options.notes.emplace_back("-x has no effect: there are no CTAs on a CPU");
  if (!environment_variable("NCCL_TESTS_DEVICE").empty())
    options.notes.emplace_back("NCCL_TESTS_DEVICE has no effect: there are no devices to choose on a CPU");
  if (words.device_cta_count) options.notes.emplace_back("-V has no effect: there are no CTAs on a CPU");
  return {};
}

Status take_lanes(Options& options, const Words& words) {
  if (words.lane) {
    SLUICE_TRY_ASSIGN(options.lane, parse_lane(*words.lane));
  }
  for (const std::string& word : words.beside) {
    SLUICE_TRY_ASSIGN(BackgroundRule rule, parse_background(word));
    options.beside.push_back(std::move(rule));
  }
  if (words.gap) {
    const auto gap = parse_duration(*words.gap);
    if (!gap.ok()) return bad("--gap", *words.gap, "a duration such as 500us or 5ms");
    options.gap = *gap;
  }
  options.per_iteration = options.per_iteration || options.competes();
  return {};
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments, const PerfTest& test) {
  CLI::App app(std::string(test.title) + ": times and checks it over the ranks of this job",
               std::string(test.name) + "_perf");
  Words words;
  for (const OptionRow& row : kRows) app.add_option(row.names, words.*row.word, row.help);
  app.add_option("--beside", words.beside,
                 "OPERATION:BYTES:LANE, as in all_reduce:64M:bulk: an endless one on that lane; may be repeated");
  app.add_flag("--order-sensitive", words.order_sensitive, "inputs whose sum depends on the order of summation");
  Options options;
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them in reverse
  } catch (const CLI::CallForHelp&) {
    options.help = true;
    options.help_text = app.help();
    return options;
  } catch (const CLI::ParseError& error) {
    return Error{Code::invalid_argument, std::string(error.what()) + " (--help lists the options)"};
  }
  SLUICE_TRY(take_measures(options, words));
  SLUICE_TRY(take_lanes(options, words));
  SLUICE_TRY(take_counts(options, words));
  SLUICE_TRY(take_sizes(options, words));
  SLUICE_TRY(take_operations(options, words, test));
  SLUICE_TRY(take_root(options, words, test));
  SLUICE_TRY(take_order(options, words, test));
  SLUICE_TRY(take_gpu_options(options, words));
  return options;
}

std::string column_word(DataType type) {
  switch (type) {
    case DataType::float16: return "half";
    case DataType::float32: return "float";
    case DataType::float64: return "double";
    case DataType::float8_e4m3: return "f8e4m3";
    case DataType::float8_e5m2: return "f8e5m2";
    default: return std::string(name(type));
  }
}

std::string column_word(ReduceOp op) { return op == ReduceOp::premulsum ? "mulsum" : std::string(name(op)); }

std::vector<std::size_t> table_sizes(const Options& options, std::size_t element_bytes) {
  std::vector<std::size_t> sizes;
  std::size_t bytes = options.min_bytes;
  while (bytes <= options.max_bytes) {
    sizes.push_back(bytes);
    const std::size_t before = bytes;
    if (options.step_factor > 1)
      bytes = bytes == 0 ? element_bytes : bytes * static_cast<std::size_t>(options.step_factor);
    else
      bytes += options.step_bytes;
    if (bytes < before) break;  // wrapped
  }
  return sizes;
}

}  // namespace sluice::tools
