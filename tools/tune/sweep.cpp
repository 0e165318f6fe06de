#include "tools/tune/sweep.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/unique_fd.h"
#include "comm/bootstrap/unique_id.h"
#include "comm/communicator.h"
#include "device/cpu/combine.h"
#include "tools/launch/local_ranks.h"
#include "tools/tune/timed_rank.h"
#include "transport/mapping.h"

namespace sluice::tools {
namespace {

constexpr std::size_t kErrorBytes = 512;
constexpr int kCombineSamples = 9;
constexpr std::size_t kCombineElements = 32 << 10;

// What ranks hand to the process that started them: rank 0's results, and each rank's error.
class Sheet {
 public:
  static Result<Sheet> make(std::size_t results, int ranks) {
    const std::size_t bytes = results * sizeof(double) + static_cast<std::size_t>(ranks) * kErrorBytes;
    const UniqueFd fd(::memfd_create("sluice sweep", MFD_CLOEXEC));
    if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
      return system_error("can't make shared memory for the results", errno);
    SLUICE_TRY_ASSIGN(Mapping shared, Mapping::share(fd.get(), bytes));
    return Sheet(std::move(shared), results, ranks);
  }
  std::span<double> results() const { return {reinterpret_cast<double*>(shared_.data()), results_}; }
  // Returns the exit code.
  int report(int rank, const Status& status) const {
    if (!status.ok()) status.text().copy(error_of(rank), kErrorBytes - 1);
    return status.ok() ? 0 : 1;
  }
  std::string first_error() const {
    for (int rank = 0; rank < ranks_; ++rank)
      if (*error_of(rank) != '\0') return "rank " + std::to_string(rank) + ": " + error_of(rank);
    return {};
  }

 private:
  Sheet(Mapping shared, std::size_t results, int ranks)
      : shared_(std::move(shared)), results_(results), ranks_(ranks) {}
  char* error_of(int rank) const {
    return reinterpret_cast<char*>(shared_.data() + results_ * sizeof(double)) +
           static_cast<std::size_t>(rank) * kErrorBytes;
  }

  Mapping shared_;
  std::size_t results_;
  int ranks_;
};

Status measure(const Sweep& sweep, const RuntimeOptions& options, const UniqueId& id, int rank, const Sheet& sheet) {
  SLUICE_TRY_ASSIGN(const auto runtime, Runtime::join(id, rank, sweep.ranks, options));
  Communicator world = runtime->world();
  std::vector<double> local(sheet.results().size());
  SLUICE_TRY(time_as_rank(sweep, world, local));
  if (rank == 0) std::copy(local.begin(), local.end(), sheet.results().begin());
  return world.close();
}

Result<RuntimeOptions> options_for(const Sweep& sweep) {
  RuntimeOptions options{.config = sweep.config};
  const std::string transport = sweep.link == LinkKind::tcp ? "tcp" : "shm";
  SLUICE_TRY(options.config.set(Setting::transport, transport, Origin::default_value));
  SLUICE_TRY(options.config.set(Setting::tuning, "off", Origin::default_value));
  SLUICE_TRY(options.config.set(Setting::algorithm, "", Origin::default_value));
  return options;
}

}  // namespace

Result<SweepResult> run_sweep(const Sweep& sweep) {
  if (sweep.ranks < 2) return Error{Code::invalid_argument, "a sweep needs 2 ranks or more"};
  SLUICE_TRY_ASSIGN(const RuntimeOptions options, options_for(sweep));
  SLUICE_TRY_ASSIGN(const UniqueId id, make_local_unique_id());
  SLUICE_TRY_ASSIGN(const Sheet sheet, Sheet::make(sweep.cases.size() + kProbeResults, sweep.ranks));
  const auto as_rank = [&](int rank) { return sheet.report(rank, measure(sweep, options, id, rank, sheet)); };
  const bool threads = sweep.link == LinkKind::threads;
  SLUICE_TRY_ASSIGN(const LaunchOutcome outcome,
                    run_processes({.processes = threads ? 1 : sweep.ranks}, [&](int process) {
                      return threads ? run_threads(sweep.ranks, as_rank) : as_rank(process);
                    }));
  if (outcome.exit_code != 0) {
    const std::string told = sheet.first_error();
    return Error{Code::system, "the ranks could not be timed: " + (told.empty() ? outcome.text : told)};
  }
  const std::span<double> results = sheet.results();
  SweepResult found;
  found.seconds.assign(results.begin(), results.end() - kProbeResults);
  found.latency_seconds = results[sweep.cases.size()];
  found.bytes_per_second = results[sweep.cases.size() + 1];
  return found;
}

std::size_t message_bytes(Collective collective, int ranks, std::size_t bytes) {
  const bool whole =
      collective == Collective::all_reduce || collective == Collective::broadcast || collective == Collective::reduce;
  const std::size_t unit = sizeof(float) * (whole ? 1 : static_cast<std::size_t>(ranks));
  return std::max<std::size_t>(1, (bytes + unit - 1) / unit) * unit;
}

double measure_combine_rate() {
  const std::vector<float> a(kCombineElements, 1);
  const std::vector<float> b(kCombineElements, 2);
  std::vector<float> sum(kCombineElements);
  const std::array<CombineSource, 2> sources{{{a.data()}, {b.data()}}};
  const CombineTarget target{sum.data()};
  const CombineRule rule{.type = DataType::float32, .reduction = ReduceOp::sum};
  std::vector<double> seconds;
  for (int sample = 0; sample < kCombineSamples; ++sample) {
    constexpr int kTimes = 32;
    const Nanoseconds began = RealClock::instance().now();
    for (int i = 0; i < kTimes; ++i) combine(rule, sources, {&target, 1}, kCombineElements);
    seconds.push_back(std::chrono::duration<double>(RealClock::instance().now() - began).count() / kTimes);
  }
  return 2 * sizeof(float) * kCombineElements / std::max(median(std::move(seconds)), 1e-9);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sluice::tools
