#include "tools/launch/local_ranks.h"

#include <thread>
#include <vector>

namespace sluice::tools {

Result<LaunchOutcome> run_local_ranks(const LocalRanksOptions& options,
                                      const std::function<int(int index, const UniqueId& id)>& body) {
  UniqueId id{};
  if (options.id) {
    id = *options.id;
  } else {
    SLUICE_TRY_ASSIGN(id, make_local_unique_id());
  }
  if (options.processes == 1) {
    LaunchOutcome outcome;
    outcome.exit_code = body(0, id);
    return outcome;
  }
  return run_processes({.processes = options.processes, .grace = options.grace},
                       [&](int index) { return body(index, id); });
}

int run_threads(int threads, const std::function<int(int index)>& body) {
  std::vector<int> codes(static_cast<std::size_t>(threads), 0);
  std::vector<std::thread> running;
  for (int i = 1; i < threads; ++i)
    running.emplace_back([&codes, &body, i] { codes[static_cast<std::size_t>(i)] = body(i); });
  codes[0] = body(0);
  for (std::thread& one : running) one.join();
  for (const int code : codes)
    if (code != 0) return code;
  return 0;
}

}  // namespace sluice::tools
