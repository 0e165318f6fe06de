#include "tools/perf/report.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cerrno>
#include <ctime>

#include "base/unique_fd.h"
#include "sluice/version.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kJsonVersion = 3;
constexpr int kNamesMax = 10000;

std::string time_of_day() { return fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::localtime(std::time(nullptr))); }

// Creates `path`, or `path.0`, `path.1`, ... if it exists. Returns the name.
Result<std::string> create_file(const std::string& path) {
  for (int attempt = -1; attempt < kNamesMax; ++attempt) {
    const std::string candidate = attempt < 0 ? path : path + "." + std::to_string(attempt);
    const UniqueFd file(::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (file) return candidate;
    if (errno != EEXIST) return system_error("-J: '" + candidate + "' can't be created", errno);
  }
  return Error{Code::system, "-J: '" + path + "' and ten thousand names after it exist already"};
}

std::string wrong_text(const Half& half) {
  return half.wrong ? fmt::format("{:>6g}", static_cast<double>(*half.wrong)) : fmt::format("{:>6}", "N/A");
}

Json statistics_json(const Half& half) {
  const Statistics& all = *half.iterations;
  Json times = Json::array();
  for (const double seconds : half.iteration_seconds) times.push_back(seconds * 1e6);
  return {{"min_us", all.least * 1e6},
          {"max_us", all.most * 1e6},
          {"avg_us", all.mean * 1e6},
          {"p50_us", all.median * 1e6},
          {"p95_us", all.percentile_95 * 1e6},
          {"p99_us", all.percentile_99 * 1e6},
          {"p99_9_us", all.percentile_999 * 1e6},
          {"stdev_us", all.deviation * 1e6},
          {"cv_pct", all.variation_percent()},
          {"times_us", times}};
}

Json config_json(const Options& options) {
  Json json = {{"nthreads", options.threads},
               {"ngpus", options.processes},
               {"minimum_bytes", options.min_bytes},
               {"maximum_bytes", options.max_bytes}};
  if (options.step_factor > 1)
    json["step_factor"] = options.step_factor;
  else
    json["step_bytes"] = options.step_bytes;
  json["warmup_iters"] = options.warmup;
  json["iterations"] = options.iterations;
  json["aggregated_iterations"] = options.aggregate;
  json["validation"] = options.checks;
  json["graph"] = 0;
  json["blocking_collectives"] = options.blocking;
  json["per_iter_timing"] = options.per_iteration;
  json["order_sensitive"] = options.order_sensitive;
  json["unalign"] = options.unalign;
  return json;
}

}  // namespace

std::string fitted(double value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:{}.{}f}", value, width, decimals);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

Result<Report> Report::create(const PerfTest& test, const Options& options, std::vector<std::string> arguments,
                              std::FILE* stream) {
  Report report(test, options, stream);
  report.json_ = {{"version", kJsonVersion}, {"start_time", time_of_day()}, {"args", std::move(arguments)}};
  if (!options.output_file.empty()) {
    SLUICE_TRY_ASSIGN(report.path_, create_file(options.output_file));
    report.comment("Writing JSON output to " + report.path_);
  }
  return report;
}

void Report::header(const Config& config, const std::vector<std::string>& rank_lines) {
  const bool by_factor = options_.step_factor > 1;
  comment(
      fmt::format("sluice-tests version {0} sluice-headers={0} sluice-library={1}", SLUICE_VERSION_STRING, version()));
  comment(fmt::format("Collective test starting: {}_perf", test_.name));
  comment(fmt::format(
      "nThread {} nGpus {} minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg iters: {} "
      "validation: {} graph: 0 unalign: {}",
      options_.threads, options_.processes, options_.min_bytes, options_.max_bytes,
      by_factor ? static_cast<std::size_t>(options_.step_factor) : options_.step_bytes, by_factor ? "factor" : "bytes",
      options_.warmup, options_.iterations, options_.aggregate, options_.checks, options_.unalign));
  Json environment = Json::array();
  for (const SettingRow& one : setting_rows())
    if (config.origin(one.setting) != Origin::default_value) {
      comment(
          fmt::format("setting {} = {} ({})", one.name, config.text(one.setting), name(config.origin(one.setting))));
      environment.push_back(fmt::format("{}={}", one.variable, config.text(one.setting)));
    }
  for (const std::string& note : options_.notes) comment("note: " + note);
  if (options_.lane) comment("Lane: " + to_text(*options_.lane));
  for (const BackgroundRule& one : options_.beside) comment("Beside: " + to_text(one));
  if (options_.blocking == 1) comment("Blocking Enabled: wait for completion and barrier after each collective");
  if (options_.per_iteration) comment("Per-Iteration Report: i_* are over iterations of the slowest rank in each");
  comment("");
  comment("Using devices");
  Json devices = Json::array();
  for (const std::string& line : rank_lines) {
    print(line + "\n");
    devices.push_back(line);
  }
  json_["env"] = environment;
  json_["sluice_version"] = version();
  json_["config"] = config_json(options_);
  json_["config"]["devices"] = devices;
  json_["results"] = Json::array();
  std::fflush(stream_);
}

void Report::columns() {
  const char* time = options_.cpu_time ? "cputime" : "time";
  const auto half = [&](const char* a, const char* b, const char* c, const char* d, bool units) {
    std::string text = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", a, b, c, d);
    if (!options_.per_iteration) return text;
    if (units) return text + fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "(us)", "(us)", "(us)", "(%)");
    return text + fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "i_min", "i_max", "i_p99", "i_cv%");
  };
  const std::string names = half(time, "algbw", "busbw", "#wrong", false);
  const std::string units = half("(us)", "(GB/s)", "(GB/s)", "", true);
  const auto stamp = [&](const char* text) {
    return options_.timestamps ? fmt::format(" {:>20}", text) : std::string();
  };
  comment("");
  print(fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}  {:^{}}{:^{}}\n", "", "", "", "", "", "out-of-place",
                    names.size() - 2, "in-place", names.size()));
  print(fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}\n", "size", "count", "type", "redop", "root", names,
                    names, stamp("timestamp")));
  print(fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}\n", "(B)", "(elements)", "", "", "", units, units,
                    stamp("Y-m-d H:M:S")));
}

void Report::comment(const std::string& text) { print(text.empty() ? "#\n" : "# " + text + "\n"); }

std::string Report::half_text(const Half& half) const {
  std::string text = half.seconds ? fmt::format("  {}  {}  {}", fitted(*half.seconds * 1e6, 7),
                                                fitted(half.algorithm_bandwidth, 6), fitted(half.bus_bandwidth, 6))
                                  : fmt::format("  {:>7}  {:>6}  {:>6}", "N/A", "N/A", "N/A");
  text += "  " + wrong_text(half);
  if (!options_.per_iteration) return text;
  if (!half.iterations) return text + fmt::format("  {:>7}  {:>7}  {:>7}  {:>7}", "N/A", "N/A", "N/A", "N/A");
  const Statistics& all = *half.iterations;
  return text + fmt::format("  {}  {}  {}  {}", fitted(all.least * 1e6, 7), fitted(all.most * 1e6, 7),
                            fitted(all.percentile_99 * 1e6, 7), fitted(all.variation_percent(), 7));
}

Json Report::half_json(const Half& half) const {
  if (!half.seconds && !half.wrong) return nullptr;
  Json json;
  json[options_.cpu_time ? "cpu_time" : "time"] = half.seconds ? Json(*half.seconds * 1e6) : Json(nullptr);
  json["alg_bw"] = half.seconds ? Json(half.algorithm_bandwidth) : Json(nullptr);
  json["bus_bw"] = half.seconds ? Json(half.bus_bandwidth) : Json(nullptr);
  json["nwrong"] = half.wrong ? Json(*half.wrong) : Json(nullptr);
  for (const Beside& one : half.beside)
    json["beside"].push_back({{"what", one.what},
                              {"operations", one.operations},
                              {"alg_bw", one.operations == 0 ? Json(nullptr) : Json(one.bytes_per_second / 1e9)}});
  return json;
}

// Under the row: how the iterations are spread, and what ran beside them.
void Report::lane_line(const char* which, const Half& half) {
  if (!options_.competes() || !half.iterations) return;
  const Statistics& all = *half.iterations;
  std::string text =
      fmt::format("  {}: p50 {:.1f} us, p99 {:.1f} us, p99.9 {:.1f} us of {} iterations", which, all.median * 1e6,
                  all.percentile_99 * 1e6, all.percentile_999 * 1e6, half.iteration_seconds.size());
  for (const Beside& one : half.beside)
    text += one.operations == 0
                ? fmt::format("; {}: none ended meanwhile", one.what)
                : fmt::format("; {}: {} ended, {:.3f} GB/s", one.what, one.operations, one.bytes_per_second / 1e9);
  comment(text);
}

void Report::row(const Row& row) {
  print(fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}{}\n", row.bytes, row.count, column_word(row.type),
                    row.operation, row.root, half_text(row.out_of_place), half_text(row.in_place),
                    options_.timestamps ? fmt::format(" {:>20}", time_of_day()) : ""));
  lane_line("out of place", row.out_of_place);
  lane_line("in place", row.in_place);
  std::fflush(stream_);
  if (path_.empty()) return;
  Json json = {{"size", row.bytes},
               {"count", row.count},
               {"type", column_word(row.type)},
               {"redop", row.operation},
               {"root", row.root},
               {"out_of_place", half_json(row.out_of_place)},
               {"in_place", half_json(row.in_place)}};
  if (!row.algorithm.empty()) json["algorithm"] = row.algorithm;
  if (row.out_of_place.iterations) json["out_of_place_per_iter"] = statistics_json(row.out_of_place);
  if (row.in_place.iterations) json["in_place_per_iter"] = statistics_json(row.in_place);
  json["actual_iterations"] = options_.iterations;
  json["experiment_name"] = std::string(test_.title);
  json_["results"].push_back(std::move(json));
}

void Report::footer(const Totals& totals) {
  const bool slow = totals.too_slow();
  comment(fmt::format("{:<20} : {} {}", "Out of bounds values", totals.wrong, totals.wrong > 0 ? "FAILED" : "OK"));
  comment(fmt::format("{:<20} : {:g} {}", "Avg bus bandwidth", totals.average_bandwidth(),
                      !totals.least_bandwidth ? "" : (slow ? "FAILED" : "OK")));
  comment(fmt::format("{:<20} : {} wrong {}", "Combinations checked", totals.combinations, totals.wrong_combinations));
  comment("");
  comment(fmt::format("Collective test concluded: {}_perf", test_.name));
  json_["out_of_bounds"] = {{"count", totals.wrong}, {"okay", totals.wrong == 0}};
  json_["average_bus_bandwidth"] = {{"bandwidth", totals.average_bandwidth()},
                                    {"okay", totals.least_bandwidth ? Json(!slow) : Json("unchecked")}};
  json_["combinations"] = {{"checked", totals.combinations}, {"wrong", totals.wrong_combinations}};
  std::fflush(stream_);
}

void Report::error(const std::string& text) { json_["errors"].push_back(text); }

Status Report::finish() {
  if (path_.empty()) return {};
  json_["end_time"] = time_of_day();
  if (!json_.contains("errors")) json_["errors"] = Json::array();
  const std::string text = json_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::FILE* file = std::fopen(path_.c_str(), "w");
  if (file == nullptr) return system_error("-J: '" + path_ + "' can't be written", errno);
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !whole) return system_error("-J: writing '" + path_ + "'", errno);
  return {};
}

}  // namespace sluice::tools
