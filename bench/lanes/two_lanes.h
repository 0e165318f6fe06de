// An urgent operation again and again beside an endless large one, in another library's program, as `--lane` and `--beside` measure it in
// ours:  PROGRAM all_reduce|alltoall URGENT_BYTES BULK_BYTES ITERATIONS GAP_US ...
//
//   Prints  at rank 0 one line of JSON: {"p50_us", "p99_us", "p999_us", "bulk_operations", "bulk_bytes_per_second"}; an iteration's time is
//           that of the slowest rank.
//   Source  plain C++, nothing of Sluice.
#pragma once

#include <cstddef>
#include <vector>

namespace two_lanes {

struct Task {
  bool all_reduce = true;  // else all-to-all, of the urgent operation; the large one is an all-reduce
  std::size_t urgent_bytes = 0;
  std::size_t bulk_bytes = 0;  // 0: nothing beside
  int iterations = 0;
  int gap_us = 0;  // before each iteration
};
inline constexpr int kTaskArguments = 5;
// Ends the program with its usage if they are wrong.
Task parse(int argc, char** argv, const char* usage);

struct BulkCount {
  int operations = 0;
  double seconds = 0;  // that they took
};

// One library with two communicators, joined with its other ranks. Float32, sum.
class Library {
 public:
  virtual ~Library() = default;
  virtual int rank() const = 0;
  virtual void barrier() = 0;
  virtual void urgent() = 0;                          // once, complete at this rank when it returns
  virtual void start_bulk() = 0;                      // endless from here on
  virtual void pause(int us) = 0;                     // the large one goes on meanwhile
  virtual BulkCount stop_bulk() = 0;                  // collective
  virtual void max(std::vector<double>& values) = 0;  // over ranks
};

void measure(Library& library, const Task& task);

}  // namespace two_lanes
