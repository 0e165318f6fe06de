// All ranks of a small job in this thread, over the loop transport, with their world communicators.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "comm/executor/loop_group.h"
#include "tests/support/collective_case.h"

namespace sluice::test {

struct LoopJob {
  explicit LoopJob(int ranks, LoopOptions loop = {}, const std::string& deadline = "10min",
                   const std::vector<std::pair<Setting, std::string>>& settings = {}) {
    RuntimeOptions options;
    const auto set = [&](Setting setting, const std::string& value) {
      if (const Status done = options.config.set(setting, value, Origin::file); !done.ok()) die_of(done.error());
    };
    set(Setting::slot_bytes, "1024");
    set(Setting::slice_bytes, "256");
    set(Setting::deadline, deadline);
    for (const auto& [setting, value] : settings) set(setting, value);
    made = *detail::make_loop_runtimes(ranks, loop, options);
    for (auto& runtime : made.runtimes) worlds.push_back(runtime->world());
  }

  // Posts a case on all ranks and waits: what is wrong, or an empty string.
  std::string run(const CollectiveCase& one) {
    CaseRun run(one);
    std::vector<Work> works;
    for (Communicator& world : worlds) works.push_back(run.post(world));
    std::string wrong;
    for (Work& work : works)
      if (const Status done = work.wait(); !done.ok() && wrong.empty()) wrong = describe(one) + ": " + done.text();
    return wrong.empty() ? run.check() : wrong;
  }

  detail::LoopRuntimes made;
  std::vector<Communicator> worlds;
};

}  // namespace sluice::test
