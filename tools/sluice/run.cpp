#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "comm/bootstrap/unique_id.h"
#include "tools/launch/processes.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

constexpr int kNotFound = 127;  // as a shell says it
constexpr int kNotExecutable = 126;

void set(const char* variable, const std::string& value) {
  ::setenv(variable, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): a forked child with one thread
}

// In a child: becomes the program. Returns only if it can't.
int become(const RunOptions& options, const std::string& id, int rank) {
  const std::string ranks = std::to_string(options.ranks);
  set("SLUICE_UNIQUE_ID", id);
  set("SLUICE_RANK", std::to_string(rank));
  set("SLUICE_RANKS", ranks);
  set("SLUICE_LOCAL_RANK", std::to_string(rank));
  set("SLUICE_LOCAL_RANKS", ranks);
  std::vector<char*> arguments;
  for (const std::string& one : options.command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int why = errno;
  if (rank == 0) print_error("run", system_error("'" + options.command[0] + "' can't be started", why));
  return why == ENOENT ? kNotFound : kNotExecutable;
}

}  // namespace

int run_command(const RunOptions& options) {
  if (options.command.empty()) {
    print_error("run", {Code::invalid_argument, "a program is missing: sluice run -n 4 PROGRAM ARGUMENTS"});
    return kUsage;
  }
  const auto id = make_local_unique_id();
  if (!id.ok()) {
    print_error("run", id.error());
    return kFailed;
  }
  const auto outcome =
      run_processes({.processes = options.ranks}, [&](int rank) { return become(options, to_hex(*id), rank); });
  if (!outcome.ok()) {
    print_error("run", outcome.error());
    return kFailed;
  }
  if (options.json) {
    const nlohmann::ordered_json json = {{"ranks", options.ranks},
                                         {"exit_code", outcome->exit_code},
                                         {"failed_rank", outcome->failed_process},
                                         {"what", outcome->text}};
    std::printf("%s\n", json.dump().c_str());
  } else if (!outcome->text.empty()) {
    std::fprintf(stderr, "sluice run: rank %d failed: %s\n", outcome->failed_process, outcome->text.c_str());
  }
  return outcome->exit_code;
}

}  // namespace sluice::tools
