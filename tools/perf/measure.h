// Runs one case on the ranks of this thread: timed, or checked.
//
//   Slots     buffers hold several copies of a case side by side and iterations take turns, so that a small message does not
//             stay in the cache. Each copy has kGuard untouched bytes on both sides.
//   Checking  several copies with different data are posted at once, so that back-to-back operations are checked too. Everything
//             is compared: results, what must stay as it was (inputs, the rest of the memory), and the guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/perf/options.h"
#include "tools/perf/perf_test.h"
#include "tools/perf/ranks.h"
#include "tools/perf/values.h"

namespace sluice::tools {

inline constexpr std::size_t kGuard = 64;
inline constexpr std::size_t kCheckCopies = 4;                        // at most, of
inline constexpr std::size_t kCheckCopyBytes = std::size_t{1} << 20;  // messages up to this size

struct Timing {
  double seconds = 0;              // per operation, on this thread
  std::vector<double> iterations;  // with -I, seconds per operation
};

struct Check {
  std::uint64_t wrong = 0;  // on this thread's ranks
  std::string first;        // "rank 2: element 17 ..."
};

class Measure {
 public:
  // Allocates buffers for messages of up to options.max_bytes. `options` and `ranks` are borrowed.
  static Result<Measure> create(const PerfTest& test, const Options& options, Ranks& ranks);

  Status warm_up(const PerfCase& one, int iterations);
  Result<Timing> time(const PerfCase& one);
  // `unalign`: bytes added to the buffers' addresses. `cycle` varies the data.
  Result<Check> check(const PerfCase& one, std::size_t unalign, std::uint64_t cycle);

  CallOptions& call_options() { return call_options_; }
  std::size_t buffer_bytes() const { return 2 * capacity_; }  // per rank

  // The largest extent of any rank, in bytes: the size that the table shows.
  std::size_t case_bytes(const PerfCase& one) const;

 private:
  // Where the copies of one case lie; computed once, since posting is what is timed.
  struct Room {
    std::size_t bytes = 0;   // case_bytes
    std::size_t stride = 0;  // from copy to copy
    std::size_t slots = 0;
    std::vector<Extents> extents;  // of each member
  };

  Measure(const PerfTest& test, const Options& options, Ranks& ranks);
  Room room_for(const PerfCase& one) const;
  void post(const PerfCase& one, const Room& room, std::size_t member, std::size_t slot, std::size_t unalign);
  void post_iteration(const PerfCase& one, const Room& room, int iteration);
  // At byte `at` of every member's memories.
  void paint_copy(const PerfCase& one, const ValueRule& rule, std::size_t at);
  void compare_copy(const PerfCase& one, const ValueRule& rule, std::size_t at, Check& check);
  Status same_bits_everywhere(const Room& room, std::size_t copies, std::size_t unalign, Check& check);

  const PerfTest& test_;
  const Options& options_;
  Ranks& ranks_;
  CallOptions call_options_;
  std::size_t capacity_ = 0;
  std::vector<Work> works_;
};

}  // namespace sluice::tools
