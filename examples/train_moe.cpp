// Trains a small mixture-of-experts language model on text: alone, with -g N forked ranks, or under mpirun or torchrun.
//
//   Exit codes  0 done; 1 the run failed; 2 the command line can't be right.
#include "base/config.h"

#include <fmt/format.h>

#include <cstdio>

#include "examples/text/read_text.h"
#include "examples/train_moe/options.h"
#include "examples/train_moe/report.h"
#include "examples/train_moe/run.h"
#include "tools/launch/local_ranks.h"

namespace {

using namespace sluice;
using namespace sluice::examples;

using Text = std::vector<std::uint8_t>;

constexpr int kFailed = 1;
constexpr int kUsageError = 2;

int say(const Error& error, int exit_code = kFailed, int rank = -1) {
  fmt::print(stderr, "train_moe: {}{}\n", rank >= 0 ? fmt::format("rank {}: ", rank) : "", error.text);
  return exit_code;
}

int train(Result<std::unique_ptr<Runtime>> runtime, const Text& text, const TrainMoeOptions& options, int rank) {
  if (!runtime.ok()) return say(runtime.error(), kFailed, rank);
  const Status status = run_training(**runtime, text, options);
  return status.ok() ? 0 : say(status.error(), kFailed, rank);
}

// Forks the ranks; the text is read before, so they share its pages.
int train_here(const Text& text, const TrainMoeOptions& options) {
  const auto config = Config::load();
  if (!config.ok()) return say(config.error());
  const auto outcome = tools::run_local_ranks({.processes = options.local_ranks}, [&](int rank, const UniqueId& id) {
    return train(Runtime::join(id, rank, options.local_ranks, {.config = *config}), text, options, rank);
  });
  if (!outcome.ok()) return say(outcome.error());
  if (!outcome->text.empty()) fmt::print(stderr, "train_moe: {}\n", outcome->text);
  return outcome->exit_code;
}

// One of the launcher's ranks, or alone.
int train_launched(const Text& text, const TrainMoeOptions& options, const LaunchEnvironment& launch) {
  return train(Runtime::from_environment(), text, options, launch.rank);
}

}  // namespace

int main(int argc, char** argv) {
  const Parsed parsed = parse_options(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  const TrainMoeOptions& options = *parsed.options;

  const auto launch = read_launch_environment();
  if (!launch.ok()) return say(launch.error());
  const int ranks = std::max({1, options.local_ranks, launch->ranks});
  if (options.local_ranks > 0 && launch->ranks > 1)
    return say({Code::invalid_argument, fmt::format("-g {} under {}, which started {} ranks already: leave -g out",
                                                    options.local_ranks, launch->source, launch->ranks)},
               kUsageError);
  if (const Status status = check_mesh({options.mesh.dp > 0 ? options.mesh.dp : ranks, options.mesh.ep}, ranks);
      !status.ok())
    return say(status.error(), kUsageError);
  if (launch->rank <= 0)  // before any rank waits for this one
    if (const Status status = Report::can_write(options.metrics); !status.ok()) return say(status.error());
  const auto text = read_text(options.data);
  if (!text.ok()) return say(text.error(), kFailed, launch->rank);
  return options.local_ranks > 0 ? train_here(*text, options) : train_launched(*text, options, *launch);
}
