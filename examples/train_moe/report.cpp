#include "examples/train_moe/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

namespace sluice::examples {
namespace {

constexpr int kBarWidth = 30;
constexpr Nanoseconds kRedraw = std::chrono::milliseconds(100);
constexpr std::int64_t kPlainLines = 20;  // over the whole run

double seconds_of(const std::vector<LaneCounters>& lanes, const std::string& name) {
  for (const LaneCounters& lane : lanes)
    if (lane.lane == name) return lane.seconds_busy;
  return 0;
}

std::string bar(std::int64_t done, std::int64_t all) {
  const auto full = static_cast<std::size_t>(done * kBarWidth / all);
  return "[" + std::string(full, '#') + std::string(kBarWidth - full, '.') + "]";
}

}  // namespace

Status Report::can_write(const std::string& metrics) {
  if (metrics.empty()) return {};
  std::FILE* file = std::fopen(metrics.c_str(), "a");
  if (file == nullptr) return system_error("metrics file " + metrics + " can't be written", errno);
  std::fclose(file);
  return {};
}

Result<std::unique_ptr<Report>> Report::create(const std::string& metrics, std::int64_t steps) {
  SLUICE_TRY(can_write(metrics));
  return std::unique_ptr<Report>(new Report(metrics.empty() ? nullptr : std::fopen(metrics.c_str(), "w"), steps));
}

Report::Report(std::FILE* metrics, std::int64_t steps)
    : metrics_(metrics), steps_(steps), terminal_(isatty(STDOUT_FILENO) == 1), begun_(RealClock::instance().now()) {}

Report::~Report() = default;

void Report::step(const StepReport& report, const std::vector<LaneCounters>& lanes) {
  tokens_ += report.result.tokens;
  training_seconds_ += report.seconds;
  if (report.eval_loss) eval_loss_ = report.eval_loss;
  show(report);
  if (metrics_) write(report, lanes);
  before_ = lanes;
}

void Report::show(const StepReport& report) {
  const Nanoseconds now = RealClock::instance().now();
  const bool last = report.step == steps_;
  const std::string text = fmt::format("step {:>{}}/{}  loss {:.4f}  held out {}  {:.0f} tokens/s", report.step,
                                       std::to_string(steps_).size(), steps_, report.result.loss,
                                       eval_loss_ ? fmt::format("{:.4f}", *eval_loss_) : "-",
                                       static_cast<double>(tokens_) / training_seconds_);
  if (terminal_) {
    if (!last && now - shown_ < kRedraw) return;
    shown_ = now;
    fmt::print("\r{} {}\x1b[K{}", bar(report.step, steps_), text, last ? "\n" : "");
  } else {
    const std::int64_t every = std::max<std::int64_t>(1, steps_ / kPlainLines);
    if (report.step != 1 && report.step % every != 0 && !last) return;
    fmt::print("{}\n", text);
  }
  std::fflush(stdout);
}

void Report::write(const StepReport& report, const std::vector<LaneCounters>& lanes) {
  nlohmann::ordered_json line{{"step", report.step}, {"loss", report.result.loss}};
  if (report.eval_loss) line["eval_loss"] = *report.eval_loss;
  line["balance_loss"] = report.result.balance_loss;
  line["gradient_norm"] = report.result.gradient_norm;
  line["learning_rate"] = report.learning_rate;
  line["tokens"] = report.result.tokens;
  line["tokens_per_second"] = static_cast<double>(report.result.tokens) / report.seconds;
  line["seconds"] = report.seconds;
  for (const char* lane : {"dp", "ep"})
    line["lane_seconds"][lane] = seconds_of(lanes, lane) - seconds_of(before_, lane);
  fmt::print(metrics_.get(), "{}\n", line.dump());
  std::fflush(metrics_.get());
}

void Report::finish(double eval_loss, const std::vector<LaneCounters>& lanes) {
  const double seconds = std::chrono::duration<double>(RealClock::instance().now() - begun_).count();
  fmt::print("held-out loss {:.4f} nats a byte after {} bytes in {:.1f} s ({:.0f} tokens/s while training)\n",
             eval_loss, tokens_, seconds, static_cast<double>(tokens_) / training_seconds_);
  for (const LaneCounters& lane : lanes)
    if (lane.operations > 0)
      fmt::print("lane {:<8} {:>8} operations  {:>10} sent  {:.1f} s busy (rank 0)\n", lane.lane, lane.operations,
                 format_bytes(lane.bytes_sent), lane.seconds_busy);
}

}  // namespace sluice::examples
