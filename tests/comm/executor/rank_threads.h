// Threads as ranks: each thread joins with its own Runtime, over the transport that the test names.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/bootstrap/control.h"
#include "comm/communicator.h"

namespace sluice::test {

struct JobOptions {
  int ranks = 2;
  std::string transport = "shm";
  std::vector<std::pair<Setting, std::string>> settings;
};

// Runs `body` as each rank; the first failure's text, or an empty string.
inline std::string run_ranks(const JobOptions& job, const std::function<std::string(Runtime&)>& body) {
  RuntimeOptions options;
  const auto set = [&](Setting setting, const std::string& value) {
    if (const Status done = options.config.set(setting, value, Origin::file); !done.ok()) die_of(done.error());
  };
  set(Setting::transport, job.transport);
  for (const auto& [setting, value] : job.settings) set(setting, value);
  auto id = Control::make_unique_id(options.config);
  if (!id.ok()) return id.error().text;
  std::vector<std::string> wrong(static_cast<std::size_t>(job.ranks));
  std::vector<std::thread> threads;
  threads.reserve(wrong.size());
  for (Rank rank = 0; rank < job.ranks; ++rank)
    threads.emplace_back([&, rank] {
      auto runtime = Runtime::join(*id, rank, job.ranks, options);
      wrong[static_cast<std::size_t>(rank)] = runtime.ok() ? body(**runtime) : runtime.error().text;
    });
  for (std::thread& thread : threads) thread.join();
  for (Rank rank = 0; rank < job.ranks; ++rank)
    if (!wrong[static_cast<std::size_t>(rank)].empty())
      return "rank " + std::to_string(rank) + ": " + wrong[static_cast<std::size_t>(rank)];
  return {};
}

}  // namespace sluice::test
