// How a rank comes to life: configuration, joining, transports, engine. The other half of Runtime is runtime.cpp.
#include <algorithm>
#include <array>

#include "base/log.h"
#include "comm/bootstrap/environment.h"
#include "comm/bootstrap/peer_info.h"
#include "comm/communicator.h"
#include "comm/executor/runtime_state.h"
#include "comm/tune/tuned_link.h"
#include "comm/tune/tuning_store.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace sluice {
namespace {

void apply_log_level(const Config& config) {
  constexpr std::array<std::string_view, 5> kWords{"off", "error", "warn", "info", "debug"};
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if (config.text(Setting::log) == kWords[i]) set_log_level(static_cast<LogLevel>(i));
}

std::string describe(const Control& control, const Config& config) {
  int hosts = 0;
  for (Rank rank = 0; rank < control.ranks(); ++rank) {
    bool first = true;
    for (Rank before = 0; before < rank; ++before)
      first = first && control.peer(before).host_id != control.peer(rank).host_id;
    if (first) ++hosts;
  }
  return "joined " + std::to_string(control.ranks()) + " ranks on " + std::to_string(hosts) + " host" +
         (hosts == 1 ? "" : "s") + ", transport " + config.text(Setting::transport);
}

// A job of one rank and one over the loop transport have nothing to choose by.
Tuning tuning_of(const Config& config, int ranks) {
  if (ranks <= 1 || config.text(Setting::transport) == "loop") return {};
  return load_tuning(config);
}

// Predictions serve as well, so a file that can't be used is no error; one rank says so, lest all do.
void report(const Tuning& tuning, const Control& control) {
  if (control.rank() != 0 || control.ranks() == 1) return;
  const std::string cure =
      ": algorithms are chosen by prediction (sluice tune writes a new one; SLUICE_TUNING=off: none)";
  if (tuning.refused) log(LogLevel::warn, 0, tuning.why_none + cure);
  if (tuning.file != nullptr) log(LogLevel::info, 0, "chooses algorithms by the times measured in " + tuning.path);
  if (const std::string differs = tuning_difference(control); !differs.empty()) log(LogLevel::warn, 0, differs);
}

Result<std::unique_ptr<Runtime>> assemble(std::unique_ptr<Control> control, const Config& config, Tuning tuning) {
  apply_log_level(config);
  detail::RuntimeState::Parts parts;
  SLUICE_TRY_ASSIGN(parts.lanes, configured_lanes(config));
  for (const Lane& lane : parts.lanes) SLUICE_TRY(check_cores(complete(lane, {}), allowed_cores()));
  parts.config = config;
  parts.clock = &RealClock::instance();
  const std::string& wanted = config.text(Setting::transport);
  if (wanted == "loop" && control->ranks() > 1)
    return Error{Code::unsupported,
                 "SLUICE_TRANSPORT=loop needs all ranks in one thread (Runtime::loop); this job has " +
                     std::to_string(control->ranks()) + " processes or threads"};
  if (control->ranks() > 1 && wanted != "tcp") {
    SLUICE_TRY_ASSIGN(auto shm, ShmTransport::make(control->rank(), control->ranks(), config, *control));
    parts.transports.push_back(std::move(shm));
  }
  if (control->ranks() > 1 && wanted != "shm") {
    SLUICE_TRY_ASSIGN(auto tcp, TcpTransport::make(control->rank(), control->ranks(), config, *control));
    parts.transports.push_back(std::move(tcp));
  }
  parts.engine.crowded = is_crowded(*control);
  parts.engine.shares_network = wanted != "tcp" && shares_network(*control);
  parts.engine.spin = config.duration(Setting::spin);
  parts.engine.thread = control->ranks() > 1;
  if (control->rank() == 0) log(LogLevel::info, 0, describe(*control, config));
  report(tuning, *control);
  parts.tuning = std::move(tuning.file);
  parts.control = std::move(control);
  return std::make_unique<Runtime>(std::make_shared<detail::RuntimeState>(std::move(parts)));
}

}  // namespace

Result<std::unique_ptr<Runtime>> Runtime::from_environment() {
  SLUICE_TRY_ASSIGN(const Config config, Config::load());
  SLUICE_TRY_ASSIGN(const LaunchEnvironment launch, read_launch_environment());
  return from_launch(launch, {.config = config, .join_deadline = config.duration(Setting::join_deadline)});
}

Result<std::unique_ptr<Runtime>> Runtime::from_launch(const LaunchEnvironment& launch, const RuntimeOptions& options) {
  apply_log_level(options.config);
  Tuning tuning = tuning_of(options.config, launch.ranks);
  SLUICE_TRY_ASSIGN(auto control, control_from_environment(options.config, launch, tuning.digest));
  return assemble(std::move(control), options.config, std::move(tuning));
}

Result<std::unique_ptr<Runtime>> Runtime::join(std::span<const std::byte, 128> unique_id, Rank rank, int ranks,
                                               const RuntimeOptions& options) {
  Control::Join join;
  std::copy(unique_id.begin(), unique_id.end(), join.id.begin());
  join.rank = rank;
  join.ranks = ranks;
  join.deadline = options.join_deadline;
  join.config = &options.config;
  apply_log_level(options.config);
  Tuning tuning = tuning_of(options.config, ranks);
  join.tuning = tuning.digest;
  SLUICE_TRY_ASSIGN(auto control, Control::join(join));
  return assemble(std::move(control), options.config, std::move(tuning));
}

Result<std::unique_ptr<Runtime>> Runtime::alone(const RuntimeOptions& options) {
  return assemble(Control::alone(), options.config, {});
}

}  // namespace sluice
