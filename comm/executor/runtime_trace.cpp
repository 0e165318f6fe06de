// What a runtime and its communicators tell of themselves: traces and metrics.
#include <unistd.h>

#include "base/log.h"
#include "base/replace_file.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"
#include "comm/trace/metrics.h"

namespace sluice::detail {
namespace {

std::string default_folder() {
  std::string root = environment_variable("TMPDIR");
  if (root.empty()) root = "/tmp";
  return root + "/sluice-" + std::to_string(::geteuid());
}

TraceOperation describe(Operation& operation, Nanoseconds now) {
  return {.kind = std::string(name(operation.fingerprint().kind)),
          .sequence = operation.fingerprint().sequence,
          .posted_at = operation.posted_at(),
          .waits_for = operation.waiting_for(),
          .waits_on = operation.waits_on(),
          .slice = operation.slice(),
          .stuck_seconds = std::chrono::duration<double>(operation.stuck_for(now)).count()};
}

}  // namespace

TraceCommunicator CommunicatorState::describe(Nanoseconds now) {
  TraceCommunicator all{
      .number = trace_number_,
      .id = identity_.id,
      .name = identity_.name,
      .lane = lane().name,
      .priority = std::string(name(*lane().priority)),
      .rank = rank(),
      .members = identity_.members,
      .posted = history_.last_sequence(),
      .error = status().ok() ? std::string() : std::string(name(status().code())) + ": " + status().text()};
  const auto add = [&](OperationQueue& queue) {
    for (Operation* one = queue.front(); one != nullptr; one = one->next)
      all.unfinished.push_back(detail::describe(*one, now));
  };
  if (!collectives_.empty()) add(collectives_);
  messages_.for_each(add);
  return all;
}

TraceDump RuntimeState::trace(const std::string& why) {
  const PeerInfo& root = control().peer(0);
  TraceDump dump{.rank = world_rank(),
                 .ranks = control().ranks(),
                 .host = control().peer(world_rank()).host_name,
                 .job = std::to_string(root.process_id),
                 .why = why,
                 .recorded = traces_.recorder().recorded(),
                 .communicators = {traces_.retired().begin(), traces_.retired().end()},
                 .events = traces_.recorder().events()};
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [rank, how] : gone_) dump.lost.push_back({rank, how});
  }
  directory_.visit_all(
      [&](CommunicatorState& communicator) { dump.communicators.push_back(communicator.describe(clock().now())); });
  return dump;
}

Result<std::string> RuntimeState::write_trace(const std::string& folder, const std::string& why) {
  Result<std::string> written = std::string();
  engine().with_token([&] { written = detail::write_trace(folder, trace(why), clock()); });
  return written;
}

void RuntimeState::keep_trace(const std::string& why) {
  const std::string& folder = config().text(Setting::trace);
  if (trace_kept_ || folder == "off" || parts_.loop != nullptr) return;
  trace_kept_ = true;
  const auto written = detail::write_trace(folder == "auto" ? default_folder() : folder, trace(why), clock());
  if (written.ok())
    log(LogLevel::warn, world_rank(), "the last events are in " + *written + " (sluice trace --diagnose its folder)");
  else
    log(LogLevel::warn, world_rank(), "the last events were not kept: " + written.status().text());
}

void RuntimeState::write_metrics(Nanoseconds now) {
  metrics_written_ = now;
  const std::string& folder = config().text(Setting::metrics);
  if (folder.empty()) return;
  const std::string path = folder + "/rank-" + std::to_string(world_rank()) + ".prom";
  const Status written =
      replace_file(path, to_prometheus(lane_counters(), world_rank()), 0644, "the metrics", /*sync=*/false);
  if (!written.ok()) log(LogLevel::warn, world_rank(), written.text());
}

}  // namespace sluice::detail
