// What train_moe tells: a progress bar on a terminal, plain lines elsewhere, and the metrics file. Rank 0 has one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/communicator.h"
#include "layers/trainer.h"

namespace sluice::examples {

struct StepReport {
  std::int64_t step = 0;  // 1 is the first
  StepResult result;
  double learning_rate = 0;
  std::optional<double> eval_loss;
  double seconds = 0;  // of the step, without the look at the held-out part
};

class Report {
 public:
  // system: the metrics file can't be written; empty name: none. can_write() says so without making a report.
  static Status can_write(const std::string& metrics);
  static Result<std::unique_ptr<Report>> create(const std::string& metrics, std::int64_t steps);
  ~Report();

  // lanes: of the runtime, since its beginning; the report takes differences.
  void step(const StepReport& report, const std::vector<LaneCounters>& lanes);
  void finish(double eval_loss, const std::vector<LaneCounters>& lanes);

 private:
  Report(std::FILE* metrics, std::int64_t steps);
  void show(const StepReport& report);
  void write(const StepReport& report, const std::vector<LaneCounters>& lanes);

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> metrics_;
  std::int64_t steps_;
  bool terminal_;
  Nanoseconds begun_;
  Nanoseconds shown_{0};
  std::int64_t tokens_ = 0;
  double training_seconds_ = 0;
  std::optional<double> eval_loss_;  // the last one known
  std::vector<LaneCounters> before_;
};

}  // namespace sluice::examples
