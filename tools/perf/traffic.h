// Who sends how much to whom in alltoallv_perf.
//
//   Generated  rank i sends rank i+d (mod n) a share that grows with the distance d: spread 1 is proportional to d (nothing to
//              itself), 0 is uniform, between blends the two. Every rank's total is the same.
//   Matrix     a square of whole or fractional byte counts, whitespace-separated, row = sender; scaled, cut to elements. Larger
//              than the number of ranks is fine, the rest is not used.
//   Variables  NCCL_TESTS_ALLTOALLV_SPREAD, _MATRIX_FILE, _MATRIX_SCALE, _PRINT_SUMMARY, as in nccl-tests.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace sluice::tools {

struct TrafficSettings {
  double spread = 1;
  std::string matrix_file;
  double matrix_scale = 1;
  bool summary = false;
};
// Errors: invalid_argument names variable, value and what is allowed.
Result<TrafficSettings> read_traffic_settings();

// Bytes from row to column; `size` rows of `size`.
struct TrafficMatrix {
  std::size_t size = 0;
  std::vector<double> bytes;
};
// Errors: invalid_argument names row, column and what is wrong.
Result<TrafficMatrix> parse_traffic_matrix(std::string_view text);
Result<TrafficMatrix> read_traffic_matrix(const std::string& path);

class Traffic {
 public:
  // Every rank sends about `bytes` in all.
  static Traffic generated(int ranks, std::size_t bytes, std::size_t element_bytes, double spread);
  // Errors: invalid_argument if the matrix has fewer rows than there are ranks.
  static Result<Traffic> from_matrix(const TrafficMatrix& matrix, double scale, int ranks, std::size_t element_bytes);

  std::size_t count(Rank from, Rank to) const { return counts_[index(from, to)]; }  // elements
  const std::vector<std::size_t>& sent_by(Rank rank) const { return sent_[static_cast<std::size_t>(rank)]; }
  const std::vector<std::size_t>& received_by(Rank rank) const { return received_[static_cast<std::size_t>(rank)]; }
  std::size_t total_sent(Rank rank) const;
  std::size_t total_received(Rank rank) const;
  std::size_t largest_total() const;  // of what any rank sends or receives

 private:
  Traffic(int ranks, std::vector<std::size_t> counts);
  std::size_t index(Rank from, Rank to) const { return static_cast<std::size_t>(from * ranks_ + to); }

  int ranks_;
  std::vector<std::size_t> counts_;
  std::vector<std::vector<std::size_t>> sent_;      // by sender, by receiver
  std::vector<std::vector<std::size_t>> received_;  // by receiver, by sender
};

}  // namespace sluice::tools
