#include "tools/perf/traffic.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "base/config.h"

namespace sluice::tools {
namespace {

Result<double> number_variable(const char* variable, double fallback, double most) {
  const std::string text = environment_variable(variable);
  if (text.empty()) return fallback;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= most))
    return Error{Code::invalid_argument, "environment variable " + std::string(variable) + " is '" + text +
                                             "', but must be a number between 0 and " + std::to_string(most)};
  return value;
}

std::size_t sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

Error bad_matrix(std::size_t row, const std::string& what) {
  return {Code::invalid_argument, "traffic matrix, row " + std::to_string(row + 1) + ": " + what};
}

}  // namespace

Result<TrafficSettings> read_traffic_settings() {
  TrafficSettings settings;
  SLUICE_TRY_ASSIGN(settings.spread, number_variable("NCCL_TESTS_ALLTOALLV_SPREAD", 1, 1));
  SLUICE_TRY_ASSIGN(settings.matrix_scale, number_variable("NCCL_TESTS_ALLTOALLV_MATRIX_SCALE", 1, 1e12));
  settings.matrix_file = environment_variable("NCCL_TESTS_ALLTOALLV_MATRIX_FILE");
  SLUICE_TRY_ASSIGN(const double summary, number_variable("NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY", 0, 1e9));
  settings.summary = summary != 0;
  return settings;
}

Result<TrafficMatrix> parse_traffic_matrix(std::string_view text) {
  TrafficMatrix matrix;
  std::istringstream lines{std::string(text)};
  std::string line;
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string word;
    std::size_t columns = 0;
    for (; words >> word; ++columns) {
      double value = 0;
      const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
      if (error != std::errc() || end != word.data() + word.size() || !(value >= 0 && value < 0x1p62))
        return bad_matrix(rows, "'" + word + "' is not a number of bytes");
      matrix.bytes.push_back(value);
    }
    if (columns == 0) continue;
    if (rows == 0) matrix.size = columns;
    if (columns != matrix.size)
      return bad_matrix(
          rows, "has " + std::to_string(columns) + " columns, the first row has " + std::to_string(matrix.size));
    ++rows;
  }
  if (rows == 0 || rows != matrix.size)
    return Error{Code::invalid_argument, "the traffic matrix must be square, but has " + std::to_string(rows) +
                                             " rows of " + std::to_string(matrix.size)};
  return matrix;
}

Result<TrafficMatrix> read_traffic_matrix(const std::string& path) {
  std::ifstream file(path);
  if (!file)
    return Error{Code::invalid_argument, "NCCL_TESTS_ALLTOALLV_MATRIX_FILE names '" + path + "', which can't be read"};
  std::ostringstream text;
  text << file.rdbuf();
  return parse_traffic_matrix(text.str());
}

Traffic::Traffic(int ranks, std::vector<std::size_t> counts) : ranks_(ranks), counts_(std::move(counts)) {
  for (Rank rank = 0; rank < ranks; ++rank) {
    auto& sent = sent_.emplace_back();
    auto& received = received_.emplace_back();
    for (Rank peer = 0; peer < ranks; ++peer) {
      sent.push_back(count(rank, peer));
      received.push_back(count(peer, rank));
    }
  }
}

Traffic Traffic::generated(int ranks, std::size_t bytes, std::size_t element_bytes, double spread) {
  const auto total = static_cast<double>(bytes / element_bytes);  // NOLINT(bugprone-integer-division): whole elements
  const double distances = ranks > 1 ? 0.5 * ranks * (ranks - 1) : 1;
  std::vector<std::size_t> counts;
  for (Rank from = 0; from < ranks; ++from)
    for (Rank to = 0; to < ranks; ++to) {
      const double by_distance = ranks > 1 ? ((to - from + ranks) % ranks) / distances : 1;
      counts.push_back(static_cast<std::size_t>(total * ((1 - spread) / ranks + spread * by_distance)));
    }
  return {ranks, std::move(counts)};
}

Result<Traffic> Traffic::from_matrix(const TrafficMatrix& matrix, double scale, int ranks, std::size_t element_bytes) {
  if (matrix.size < static_cast<std::size_t>(ranks))
    return Error{Code::invalid_argument, "the traffic matrix has " + std::to_string(matrix.size) +
                                             " rows, but there are " + std::to_string(ranks) + " ranks"};
  std::vector<std::size_t> counts;
  for (std::size_t from = 0; from < static_cast<std::size_t>(ranks); ++from)
    for (std::size_t to = 0; to < static_cast<std::size_t>(ranks); ++to) {
      const double bytes = matrix.bytes[from * matrix.size + to] * scale;
      if (bytes >= 0x1p62) return bad_matrix(from, "a value overflows when scaled by " + std::to_string(scale));
      counts.push_back(static_cast<std::size_t>(bytes) / element_bytes);
    }
  return Traffic(ranks, std::move(counts));
}

std::size_t Traffic::total_sent(Rank rank) const { return sum(sent_by(rank)); }
std::size_t Traffic::total_received(Rank rank) const { return sum(received_by(rank)); }

std::size_t Traffic::largest_total() const {
  std::size_t largest = 0;
  for (Rank rank = 0; rank < ranks_; ++rank) largest = std::max({largest, total_sent(rank), total_received(rank)});
  return largest;
}

}  // namespace sluice::tools
