#include "tools/perf/main.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "integrations/mpi/mpi_bootstrap.h"
#include "tools/launch/local_ranks.h"
#include "tools/perf/driver.h"

namespace sluice::tools {
namespace {

// What all ranks of this launched process know before they join.
struct Job {
  const PerfTest& test;
  Options options;
  std::vector<std::string> arguments;
  Config config;
  LaunchEnvironment launch;
  std::optional<SplitRule> split;

  int launched() const { return launch.ranks > 0 ? launch.ranks : 1; }
  int launched_index() const { return launch.ranks > 0 ? launch.rank : 0; }
  int per_process() const { return options.processes * options.threads; }
  int ranks() const { return launched() * per_process(); }
  RuntimeOptions runtime_options() const {
    return {.config = config, .join_deadline = config.duration(Setting::join_deadline)};
  }
};

int report(const Job& job, const Error& error, int code) {
  std::fprintf(stderr, "%s_perf: %s: %s\n", std::string(job.test.name).c_str(), std::string(name(error.code)).c_str(),
               error.text.c_str());
  return code;
}

int run_with(const Job& job, std::vector<std::unique_ptr<Runtime>> runtimes) {
  auto ranks = Ranks::create(std::move(runtimes), job.split, job.options.lane);
  if (!ranks.ok()) return report(job, ranks.error(), kExitError);
  return run_perf(job.test, job.options, job.arguments, *ranks, stdout);
}

int run_with(const Job& job, Result<std::unique_ptr<Runtime>> runtime) {
  if (!runtime.ok()) return report(job, runtime.error(), kExitError);
  std::vector<std::unique_ptr<Runtime>> one;
  one.push_back(*std::move(runtime));
  return run_with(job, std::move(one));
}

int run_loop(const Job& job) {
  if (job.launched() > 1)
    return report(
        job, {Code::unsupported, "SLUICE_TRANSPORT=loop has all ranks in one thread: start one process, with -g or -t"},
        kExitUsage);
  const auto seed = static_cast<std::uint64_t>(job.config.number(Setting::loop_seed));
  auto runtimes = Runtime::loop(job.ranks(), seed, job.runtime_options());
  if (!runtimes.ok()) return report(job, runtimes.error(), kExitError);
  return run_with(job, *std::move(runtimes));
}

// The others have said themselves what is wrong, except those that were killed.
int finish(const Job& job, const Result<LaunchOutcome>& outcome) {
  if (!outcome.ok()) return report(job, outcome.error(), kExitError);
  if (outcome->exit_code > kExitError) return report(job, {Code::peer_lost, outcome->text}, outcome->exit_code);
  return outcome->exit_code;
}

int run_forked(const Job& job) {
  const auto outcome = run_local_ranks({.processes = job.options.processes}, [&](int index, const UniqueId& id) {
    return run_threads(job.options.threads, [&](int thread) {
      const Rank rank = index * job.options.threads + thread;
      return run_with(job, Runtime::join(id, rank, job.ranks(), job.runtime_options()));
    });
  });
  return finish(job, outcome);
}

// Several ranks per launched process: each joins as if the launcher had started that many.
int run_launched(const Job& job) {
  LaunchEnvironment base = job.launch;
  if (needs_mpi_to_meet(base)) {
    const auto id = unique_id_by_mpi(job.config);
    if (!id.ok()) return report(job, id.error(), kExitError);
    base.unique_id = to_hex(*id);
  }
  const auto run_one = [&](int index) {
    return run_threads(job.options.threads, [&](int thread) {
      LaunchEnvironment launch = base;
      launch.rank = job.launched_index() * job.per_process() + index * job.options.threads + thread;
      launch.ranks = job.ranks();
      if (launch.local_ranks > 0) launch.local_ranks *= job.per_process();
      return run_with(job, Runtime::from_launch(launch, job.runtime_options()));
    });
  };
  if (job.options.processes == 1) return run_one(0);
  return finish(job, run_processes({.processes = job.options.processes}, run_one));
}

int run_job(const Job& job) {
  if (job.config.text(Setting::transport) == "loop") return run_loop(job);
  if (job.ranks() == 1) return run_with(job, Runtime::alone(job.runtime_options()));
  if (job.launched() > 1) return run_launched(job);
  return run_forked(job);
}

}  // namespace

int perf_main(const PerfTest& test, int argc, char** argv) {
  Job job{.test = test, .options = {}, .arguments = {argv, argv + argc}, .config = {}, .launch = {}, .split = {}};
  auto options = parse_options({argv + 1, argv + argc}, test);
  if (!options.ok()) return report(job, options.error(), kExitUsage);
  if (options->help) {
    std::fputs(options->help_text.c_str(), stdout);
    return 0;
  }
  job.options = *std::move(options);
  auto config = Config::load();
  if (!config.ok()) return report(job, config.error(), kExitUsage);
  job.config = *std::move(config);
  auto launch = read_launch_environment();
  if (!launch.ok()) return report(job, launch.error(), kExitUsage);
  job.launch = *std::move(launch);
  auto split = read_split();
  if (!split.ok()) return report(job, split.error(), kExitUsage);
  job.split = *split;
  return run_job(job);
}

}  // namespace sluice::tools
