// The table in nccl-tests' columns, and the same as JSON (format version 3). Only the thread that drives world rank 0 has one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "tools/perf/options.h"
#include "tools/perf/perf_test.h"
#include "tools/perf/statistics.h"

namespace sluice::tools {

// Out of place, or in place. Empty fields print as N/A.
struct Half {
  std::optional<double> seconds;
  double algorithm_bandwidth = 0;  // GB/s, GB = 1e9
  double bus_bandwidth = 0;
  std::optional<std::uint64_t> wrong;
  std::optional<Statistics> iterations = {};  // -I; seconds
  std::vector<Beside> beside = {};
  std::vector<double> iteration_seconds = {};
};

struct Row {
  std::size_t bytes = 0;
  std::size_t count = 0;
  DataType type = DataType::float32;
  std::string operation;  // "none" where nothing is reduced
  Rank root = -1;
  std::string algorithm = {};
  Half out_of_place = {};
  Half in_place = {};
};

struct Totals {
  std::uint64_t wrong = 0;
  std::uint64_t combinations = 0;  // checked
  std::uint64_t wrong_combinations = 0;
  double bus_bandwidth_sum = 0;
  std::uint64_t bus_bandwidths = 0;
  std::optional<double> least_bandwidth;  // NCCL_TESTS_MIN_BW

  double average_bandwidth() const {
    return bus_bandwidths == 0 ? 0 : bus_bandwidth_sum / static_cast<double>(bus_bandwidths);
  }
  bool too_slow() const { return least_bandwidth && average_bandwidth() < 0.9 * *least_bandwidth; }
  bool failed() const { return wrong > 0 || too_slow(); }
};

class Report {
 public:
  // Errors: system if the output file can't be created. `stream` is borrowed.
  static Result<Report> create(const PerfTest& test, const Options& options, std::vector<std::string> arguments,
                               std::FILE* stream);

  void header(const Config& config, const std::vector<std::string>& rank_lines);
  void columns();
  void comment(const std::string& text);  // "# text"
  void row(const Row& row);
  void footer(const Totals& totals);
  void error(const std::string& text);
  // Writes the JSON file, if there is one.
  Status finish();

 private:
  Report(const PerfTest& test, const Options& options, std::FILE* stream)
      : test_(test), options_(options), stream_(stream) {}
  void print(const std::string& text) const { std::fputs(text.c_str(), stream_); }
  std::string half_text(const Half& half) const;
  void lane_line(const char* which, const Half& half);
  nlohmann::ordered_json half_json(const Half& half) const;

  const PerfTest& test_;
  const Options& options_;
  std::FILE* stream_;
  std::string path_;
  nlohmann::ordered_json json_;
};

// `value` in `width` characters: with as many decimals as fit, at most two.
std::string fitted(double value, int width);

}  // namespace sluice::tools
