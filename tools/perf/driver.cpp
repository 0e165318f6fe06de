#include "tools/perf/driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/rng.h"
#include "comm/algorithms/algorithms.h"
#include "tools/perf/background.h"
#include "tools/perf/machine.h"
#include "tools/perf/measure.h"
#include "tools/perf/report.h"

namespace sluice::tools {
namespace {

constexpr int kFaultsShown = 8;           // per thread
constexpr std::size_t kSweepBatch = 256;  // combinations whose counts are exchanged together

Result<std::optional<double>> least_bandwidth() {
  const std::string text = environment_variable("NCCL_TESTS_MIN_BW");
  if (text.empty()) return std::optional<double>();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0))
    return Error{Code::invalid_argument,
                 "environment variable NCCL_TESTS_MIN_BW is '" + text + "', but must be a number of GB/s"};
  return std::optional(value);
}

// Everything that one program run holds. Collective calls are made in one order on all ranks: all choices depend on
// the options, the seed and exchanged numbers alone.
class Driver {
 public:
  Driver(const PerfTest& test, const Options& options, Ranks& ranks, Report* report)
      : test_(test), options_(options), ranks_(ranks), report_(report) {}

  Status run();
  const Totals& totals() const { return totals_; }
  bool failed() const { return totals_.failed() || wrong_here_; }

 private:
  Status prepare();
  Status header();
  Status table();
  Status table_of(DataType type, ReduceOp op, Rank root);
  Status rows(DataType type, ReduceOp op, Rank root);
  Status warm_up(DataType type, ReduceOp op, Rank root);
  Status sweep();
  Result<std::string> sweep_one(Rng& rng, std::size_t number, std::uint64_t& wrong);
  Result<PerfCase> make_case(DataType type, ReduceOp op, Rank root, std::size_t bytes);
  Result<Half> run_half(const PerfCase& one);
  Result<double> over_ranks(double seconds);
  Status check(const PerfCase& one, std::size_t unalign, std::uint64_t cycle, std::uint64_t& wrong);
  Status tally(std::vector<std::uint64_t>& wrong);
  void print_traffic(const PerfCase& one, double seconds);
  std::vector<std::string> algorithms() const;
  std::vector<Rank> roots() const;
  std::string operation_word(ReduceOp op) const { return test_.reduces ? column_word(op) : "none"; }
  void comment(const std::string& text) {
    if (report_ != nullptr) report_->comment(text);
  }

  const PerfTest& test_;
  const Options& options_;
  Ranks& ranks_;
  Report* report_;  // nullptr: another thread prints
  std::optional<Measure> measure_;
  Backgrounds beside_;
  Totals totals_;
  bool wrong_here_ = false;
  int faults_shown_ = 0;
  std::uint64_t cycle_ = 0;
  std::size_t resident_before_ = 0;

  TrafficSettings traffic_settings_;
  std::optional<TrafficMatrix> matrix_;
  std::optional<Traffic> traffic_;  // of the case that runs
};

Status Driver::run() {
  resident_before_ = resident_bytes();
  SLUICE_TRY(prepare());
  SLUICE_TRY(header());
  if (report_ != nullptr && options_.sweep == 0) report_->columns();
  for (int cycle = 0; options_.cycles == 0 || cycle < options_.cycles; ++cycle) {
    SLUICE_TRY(options_.sweep > 0 ? sweep() : table());
  }
  SLUICE_TRY(beside_.stop());
  if (report_ != nullptr) report_->footer(totals_);
  if (options_.memory)
    comment(fmt::format("{:<20} : before buffers {} B | buffers of a rank {} B | peak {} B", "Process memory",
                        resident_before_, measure_->buffer_bytes(), most_resident_bytes()));
  return ranks_.close();
}

Status Driver::prepare() {
  SLUICE_TRY_ASSIGN(totals_.least_bandwidth, least_bandwidth());
  if (test_.by_traffic) {
    SLUICE_TRY_ASSIGN(traffic_settings_, read_traffic_settings());
    if (!traffic_settings_.matrix_file.empty()) {
      SLUICE_TRY_ASSIGN(matrix_, read_traffic_matrix(traffic_settings_.matrix_file));
      if (options_.min_bytes != options_.max_bytes)
        return {Code::invalid_argument,
                "with NCCL_TESTS_ALLTOALLV_MATRIX_FILE the sizes come from the file: give -b and -e "
                "one value, at least the largest sum of a row or column"};
    }
  }
  if (test_.rooted && options_.root && *options_.root >= ranks_.group_ranks())
    return {Code::invalid_argument, fmt::format("-r is {}, but must be below the number of ranks, which is {}",
                                                *options_.root, ranks_.group_ranks())};
  if (options_.algorithm == "all" && algorithms().empty())
    return {Code::unsupported,
            fmt::format("--algorithm all: {} has none for {} ranks", test_.title, ranks_.group_ranks())};
  SLUICE_TRY_ASSIGN(Measure measure, Measure::create(test_, options_, ranks_));
  measure_.emplace(std::move(measure));
  if (options_.algorithm != "all") measure_->call_options().algorithm = options_.algorithm;
  SLUICE_TRY(beside_.start(options_.beside, ranks_, options_.windows));
  return {};
}

Status Driver::header() {
  std::vector<std::string> lines;
  for (Member& member : ranks_.members())
    lines.push_back(fmt::format("#  Rank {:2} Group {:2} Pid {:6} on {:>10} device {:2} [cpu] {}", member.world.rank(),
                                member.color, ::getpid(), host_name(), member.world.rank(), processor_name()));
  SLUICE_TRY_ASSIGN(const auto all, ranks_.gather_lines(lines));
  if (report_ != nullptr) report_->header(ranks_.first().runtime->config(), all);
  return {};
}

std::vector<std::string> Driver::algorithms() const {
  const int ranks = ranks_.group_ranks();
  const bool canonical = options_.order == Order::canonical;
  std::vector<std::string> names;
  for (const Algorithm& one : all_algorithms())
    if (one.collective == test_.collective && one.supports(ranks) && (one.uneven || !test_.by_traffic) &&
        (!test_.reduces || !canonical || one.supports_canonical(ranks)))
      names.emplace_back(one.name);
  return names;
}

std::vector<Rank> Driver::roots() const {
  if (!test_.rooted) return {-1};
  if (options_.root) return {*options_.root};
  std::vector<Rank> all;
  for (Rank root = 0; root < ranks_.group_ranks(); ++root) all.push_back(root);
  return all;
}

Status Driver::table() {
  for (const DataType type : options_.types)
    for (const ReduceOp op : options_.operations) {
      if (const Status pair = check_pair(type, op); test_.reduces && !pair.ok()) {
        if (!options_.all_operations) return pair;
        comment(fmt::format("skipped: {} on {}: {}", column_word(op), column_word(type), pair.text()));
        continue;
      }
      for (const Rank root : roots()) SLUICE_TRY(table_of(type, op, root));
    }
  return {};
}

Status Driver::table_of(DataType type, ReduceOp op, Rank root) {
  if (options_.algorithm != "all") return rows(type, op, root);
  for (const std::string& algorithm : algorithms()) {
    comment("algorithm " + algorithm);
    measure_->call_options().algorithm = algorithm;
    SLUICE_TRY(rows(type, op, root));
  }
  return {};
}

// nccl-tests walks all sizes by doubling, whatever the step of the table.
Status Driver::warm_up(DataType type, ReduceOp op, Rank root) {
  if (options_.iterations == 0) return {};
  for (std::size_t bytes = options_.min_bytes; bytes <= options_.max_bytes;
       bytes = std::max<std::size_t>(2 * bytes, 8)) {
    SLUICE_TRY_ASSIGN(const PerfCase one, make_case(type, op, root, bytes));
    SLUICE_TRY(measure_->warm_up(one, options_.warmup));
  }
  return {};
}

Status Driver::rows(DataType type, ReduceOp op, Rank root) {
  SLUICE_TRY(warm_up(type, op, root));
  for (const std::size_t bytes : table_sizes(options_, element_bytes(type))) {
    SLUICE_TRY_ASSIGN(PerfCase one, make_case(type, op, root, bytes));
    Row row{.bytes = measure_->case_bytes(one),
            .count = one.count,
            .type = type,
            .operation = operation_word(op),
            .root = root,
            .algorithm = measure_->call_options().algorithm};
    SLUICE_TRY_ASSIGN(row.out_of_place, run_half(one));
    std::vector<std::uint64_t> wrong{row.out_of_place.wrong.value_or(0)};
    if (test_.in_place) {
      one.in_place = true;
      SLUICE_TRY_ASSIGN(row.in_place, run_half(one));
      wrong.push_back(row.in_place.wrong.value_or(0));
    }
    if (options_.checks > 0) {
      SLUICE_TRY(tally(wrong));
      row.out_of_place.wrong = wrong[0];
      if (test_.in_place) row.in_place.wrong = wrong[1];
    }
    if (report_ != nullptr) report_->row(row);
    if (traffic_settings_.summary && row.out_of_place.seconds) print_traffic(one, *row.out_of_place.seconds);
  }
  return {};
}

Result<PerfCase> Driver::make_case(DataType type, ReduceOp op, Rank root, std::size_t bytes) {
  PerfCase one{.type = type,
               .reduction = op == ReduceOp::premulsum ? Reduction::premul_sum(premul_factor(type)) : Reduction(op),
               .root = std::max(root, 0),
               .ranks = ranks_.group_ranks(),
               .bytes = bytes};
  one.count = test_.count(bytes, element_bytes(type), one.ranks);
  if (!test_.by_traffic) return one;
  if (matrix_) {
    SLUICE_TRY_ASSIGN(traffic_,
                      Traffic::from_matrix(*matrix_, traffic_settings_.matrix_scale, one.ranks, element_bytes(type)));
  } else {
    traffic_ = Traffic::generated(one.ranks, bytes, element_bytes(type), traffic_settings_.spread);
  }
  one.traffic = &*traffic_;
  if (measure_->case_bytes(one) > options_.max_bytes)
    return Error{Code::invalid_argument, fmt::format("-e is {}, but the traffic matrix needs at least {}",
                                                     options_.max_bytes, measure_->case_bytes(one))};
  return one;
}

Result<double> Driver::over_ranks(double seconds) {
  const bool sums = options_.average == Average::mean || options_.average == Average::rank0;
  const ReduceOp op = sums ? ReduceOp::sum : (options_.average == Average::least ? ReduceOp::min : ReduceOp::max);
  std::vector<std::vector<double>> mine;
  for (Member& member : ranks_.members())
    mine.push_back({options_.average == Average::rank0 && member.world.rank() != 0 ? 0 : seconds});
  SLUICE_TRY_ASSIGN(const auto all, ranks_.reduce(op, mine));
  return options_.average == Average::mean ? all[0] / ranks_.world_ranks() : all[0];
}

// The wrong elements in the result are those of this thread's ranks.
Result<Half> Driver::run_half(const PerfCase& one) {
  Half half;
  if (options_.iterations > 0) {
    const auto before = beside_.counts();
    SLUICE_TRY_ASSIGN(const Timing timing, measure_->time(one));
    half.beside = beside_.since(before);
    SLUICE_TRY_ASSIGN(half.seconds, over_ranks(timing.seconds));
    half.algorithm_bandwidth = static_cast<double>(test_.algorithm_bytes(one)) / 1e9 / std::max(*half.seconds, 1e-12);
    half.bus_bandwidth = half.algorithm_bandwidth * test_.bus_factor(one.ranks);
    totals_.bus_bandwidth_sum += half.bus_bandwidth;
    ++totals_.bus_bandwidths;
    if (options_.per_iteration) {
      SLUICE_TRY_ASSIGN(half.iteration_seconds,
                        ranks_.reduce(ReduceOp::max, std::vector(ranks_.members().size(), timing.iterations)));
      half.iterations = statistics_of({half.iteration_seconds.begin() + options_.skip, half.iteration_seconds.end()});
    }
  }
  for (int i = 0; i < options_.checks; ++i) {
    std::uint64_t wrong = 0;
    SLUICE_TRY(check(one, options_.unalign, cycle_++, wrong));
    half.wrong = half.wrong.value_or(0) + wrong;
  }
  return half;
}

// Sets `wrong` to the number of wrong elements on this thread's ranks.
Status Driver::check(const PerfCase& one, std::size_t unalign, std::uint64_t cycle, std::uint64_t& wrong) {
  SLUICE_TRY_ASSIGN(const Check found, measure_->check(one, unalign, cycle));
  wrong = found.wrong;
  if (wrong == 0) return {};
  wrong_here_ = true;
  if (faults_shown_++ < kFaultsShown)
    std::fprintf(stderr, "# wrong: %s %s %s, count %zu, root %d, %s, unalign %zu, algorithm '%s': %s\n",
                 std::string(test_.title).c_str(), column_word(one.type).c_str(),
                 operation_word(one.reduction.op).c_str(), one.count, one.root,
                 one.in_place ? "in place" : "out of place", unalign, measure_->call_options().algorithm.c_str(),
                 found.first.c_str());
  return {};
}

// One number per combination, of this thread: becomes that of all ranks together, and goes into the totals.
Status Driver::tally(std::vector<std::uint64_t>& wrong) {
  // The first member carries the thread's counts.
  std::vector<std::vector<std::uint64_t>> mine(ranks_.members().size(), std::vector<std::uint64_t>(wrong.size()));
  mine.front() = wrong;
  SLUICE_TRY_ASSIGN(wrong, ranks_.reduce(ReduceOp::sum, mine));
  for (const std::uint64_t one : wrong) {
    totals_.wrong += one;
    ++totals_.combinations;
    if (one > 0) ++totals_.wrong_combinations;
  }
  return {};
}

void Driver::print_traffic(const PerfCase& one, double seconds) {
  comment(fmt::format("NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY: mode={} nranks={} time_usec={:.2f}",
                      matrix_ ? "matrix" : "generated", one.ranks, seconds * 1e6));
  for (Rank rank = 0; rank < one.ranks; ++rank) {
    const std::size_t sent = one.traffic->total_sent(rank) * element_bytes(one.type);
    const std::size_t received = one.traffic->total_received(rank) * element_bytes(one.type);
    const double bandwidth = static_cast<double>(std::max(sent, received)) / 1e9 / seconds;
    comment(fmt::format("  rank={} send_bytes={} recv_bytes={} alg_bw={:.2f} bus_bw={:.2f}", rank, sent, received,
                        bandwidth, bandwidth * test_.bus_factor(one.ranks)));
  }
}

Status Driver::sweep() {
  Rng rng(options_.sweep_seed);
  std::vector<std::string> texts;
  std::vector<std::uint64_t> wrong;
  for (std::size_t number = 0; number < options_.sweep; ++number) {
    SLUICE_TRY_ASSIGN(std::string text, sweep_one(rng, number, wrong.emplace_back()));
    texts.push_back(std::move(text));
    if (wrong.size() < kSweepBatch && number + 1 < options_.sweep) continue;
    SLUICE_TRY(tally(wrong));
    for (std::size_t i = 0; i < wrong.size(); ++i)
      if (wrong[i] > 0) comment(fmt::format("wrong: {}: {} elements", texts[i], wrong[i]));
    texts.clear();
    wrong.clear();
  }
  return {};
}

// A random element of a list that is not empty.
template <typename List>
const auto& one_of(const List& list, Rng& rng) {
  return list[rng.below(list.size())];
}

// Runs one random combination and describes it.
Result<std::string> Driver::sweep_one(Rng& rng, std::size_t number, std::uint64_t& wrong) {
  const DataType type = one_of(options_.types, rng);
  ReduceOp op = one_of(options_.operations, rng);
  while (test_.reduces && !check_pair(type, op).ok()) {
    if (!options_.all_operations) return check_pair(type, op).error();
    op = one_of(options_.operations, rng);
  }
  const Rank root = one_of(roots(), rng);
  // Sizes spread evenly over the octaves; now and then nothing at all.
  const auto octave = std::uint64_t{1} << rng.below(static_cast<std::uint64_t>(std::bit_width(options_.max_bytes)) + 1);
  const std::size_t bytes = rng.chance(1.0 / 16) ? 0 : std::min(octave / 2 + rng.below(octave), options_.max_bytes);
  SLUICE_TRY_ASSIGN(PerfCase one, make_case(type, op, root, bytes));
  one.in_place = test_.in_place && rng.chance(0.5);
  const std::size_t unalign = rng.chance(0.5) ? rng.below(kUnalignMax + 1) : 0;
  if (options_.algorithm == "all") measure_->call_options().algorithm = one_of(algorithms(), rng);
  SLUICE_TRY(check(one, unalign, mix64(options_.sweep_seed) + number, wrong));
  return fmt::format("combination {} of seed {}: {} {} count {} root {} {} unalign {} algorithm '{}'", number,
                     options_.sweep_seed, column_word(type), operation_word(op), one.count, one.root,
                     one.in_place ? "in place" : "out of place", unalign, measure_->call_options().algorithm);
}

bool is_alike_on_all_ranks(Code code) { return code == Code::invalid_argument || code == Code::unsupported; }

}  // namespace

int run_perf(const PerfTest& test, const Options& options, const std::vector<std::string>& arguments, Ranks& ranks,
             std::FILE* out) {
  std::optional<Report> report;
  Status status;
  if (ranks.reports()) {
    auto created = Report::create(test, options, arguments, out);
    if (created.ok())
      report.emplace(*std::move(created));
    else
      status = created.status();
  }
  Driver driver(test, options, ranks, report ? &*report : nullptr);
  if (status.ok()) status = driver.run();
  if (!status.ok()) {
    const std::string text = fmt::format("{}_perf: rank {}: {}: {}", test.name, ranks.first().world.rank(),
                                         name(status.code()), status.text());
    if (ranks.reports() || !is_alike_on_all_ranks(status.code())) std::fprintf(stderr, "%s\n", text.c_str());
    if (report) report->error(text);
    if (!is_alike_on_all_ranks(status.code())) ranks.abort(text);
  }
  if (report) {
    if (const Status written = report->finish(); !written.ok()) {
      std::fprintf(stderr, "%s\n", written.text().c_str());
      return kExitError;
    }
  }
  if (!status.ok()) return is_alike_on_all_ranks(status.code()) ? kExitUsage : kExitError;
  return driver.failed() ? kExitWrong : 0;
}

}  // namespace sluice::tools
