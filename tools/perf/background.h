// --beside: an endless operation on another lane of the same ranks, while the table is measured.
//
//   Threads  each rank has one of its own for it; start() and stop() are collective, in one order on all ranks.
//   Ending   the ranks agree after every operation whether to go on, so stop() waits for the one under way.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"
#include "tools/perf/perf_test.h"
#include "tools/perf/ranks.h"

namespace sluice::tools {

struct BackgroundRule {
  const PerfTest* test = nullptr;
  std::size_t bytes = 0;
  Lane lane;
};

// "all_reduce:64M:bulk", "alltoall:8M:grads:bulk:2:max=100M": OPERATION:BYTES:LANE. A lane that is named like a priority and says nothing
// else has it. Errors: invalid_argument with the part and what is allowed.
Result<BackgroundRule> parse_background(std::string_view text);
std::string to_text(const BackgroundRule& rule);

// What ran on another lane meanwhile.
struct Beside {
  std::string what = {};
  std::uint64_t operations = 0;
  double bytes_per_second = 0;  // algorithm bandwidth of those that ended meanwhile; 0: none did
};

class Background {
 public:
  // Errors: those of split; out_of_resource; unsupported for a loop world.
  static Result<std::unique_ptr<Background>> start(const BackgroundRule& rule, Member& member, bool windows);
  ~Background();  // without stop(): gives the operations up
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // What was done until now.
  struct Count {
    std::uint64_t operations = 0;
    double ended_at = 0;  // seconds; of the last of them, or of the start
  };
  Count count() const;
  const BackgroundRule& rule() const { return rule_; }
  double algorithm_bytes() const { return static_cast<double>(rule_.test->algorithm_bytes(case_)); }

  Status stop();

 private:
  Background(const BackgroundRule& rule, Communicator communicator);
  void serve();
  Status run_once();
  Result<bool> go_on();

  BackgroundRule rule_;
  Communicator communicator_;
  PerfCase case_;
  RankMemory send_;
  RankMemory receive_;
  std::atomic<bool> stop_{false};  // read by the thread before it asks the others; orders nothing
  mutable std::mutex mutex_;
  Count count_;    // GUARDED_BY(mutex_)
  Status status_;  // GUARDED_BY(mutex_)
  std::thread thread_;
};

// All of a program's.
class Backgrounds {
 public:
  // Errors: those of Background::start; unsupported for a loop world.
  Status start(const std::vector<BackgroundRule>& rules, Ranks& ranks, bool windows);
  Status stop();
  std::vector<Background::Count> counts() const;
  std::vector<Beside> since(const std::vector<Background::Count>& before) const;

 private:
  std::vector<std::unique_ptr<Background>> all_;
};

}  // namespace sluice::tools
