// Many communicators in any order:  random_lanes_test loop|shm|tcp SEEDS [FIRST] [SHARED_SLOTS]
//
// With SHARED_SLOTS the loop transport is broken on purpose: all flows of a pair of ranks share so many slots. Then some program must
// hang, or this test would see nothing.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/comm/executor/loop_fixture.h"
#include "tests/comm/executor/random_lanes.h"
#include "tests/comm/executor/rank_threads.h"

namespace sluice::test {
namespace {

constexpr int kRanks = 8;
constexpr int kThreads = 3;  // of a free rank
constexpr std::uint64_t kFirstId = 1000;

// What one rank still has to do, in one thread or as a part of the loop's.
struct Script {
  std::vector<Communicator>* communicators = nullptr;
  std::vector<std::size_t> order = {};
  bool blocking = false;
  std::size_t next = 0;
  std::vector<std::size_t> called = {};  // calls made of each group
  std::vector<Work> works = {};

  // Posts what may be posted; true: all has ended.
  bool step(const RandomLanes& program) {
    while (next < order.size() && !(blocking && !works.empty() && !works.back().test())) {
      const std::size_t group = order[next++];
      works.push_back(program.groups()[group].calls[called[group]++]->post((*communicators)[group]));
    }
    return next == order.size() && std::all_of(works.begin(), works.end(), [](Work& work) { return work.test(); });
  }
};

std::string first_error(std::vector<Work>& works) {
  for (Work& work : works)
    if (const Status done = work.wait(); !done.ok()) return done.text();
  return {};
}

std::string run_loop(std::uint64_t seed, std::size_t shared_slots) {
  LoopOptions loop;
  loop.seed = seed;
  loop.shared_slots = shared_slots;
  LoopJob job(kRanks, loop);
  const RandomLanes program(kRanks, seed);
  std::vector<std::vector<Communicator>> communicators;
  std::vector<Script> scripts(kRanks);
  for (Rank rank = 0; rank < kRanks; ++rank)
    communicators.push_back(
        program.communicators_of(*job.made.runtimes[static_cast<std::size_t>(rank)], rank, kFirstId));
  for (Rank rank = 0; rank < kRanks; ++rank)
    scripts[static_cast<std::size_t>(rank)] = {.communicators = &communicators[static_cast<std::size_t>(rank)],
                                               .order = program.order_of(rank),
                                               .blocking = !program.is_free(rank),
                                               .called = std::vector<std::size_t>(program.groups().size())};
  for (int quiet = 0; quiet < 200;) {
    bool all = true;
    for (Script& script : scripts) all = script.step(program) && all;
    if (all) {
      for (Script& script : scripts)
        if (const std::string error = first_error(script.works); !error.empty()) return error;
      return program.check();
    }
    quiet = job.made.group->step() ? 0 : quiet + 1;
  }
  return "seed " + std::to_string(seed) + ": nothing moves any more";
}

// One thread's part: the groups that are its own.
std::string run_thread(const RandomLanes& program, std::vector<Communicator>& communicators, Rank rank,
                       std::size_t thread) {
  Script script{.communicators = &communicators,
                .blocking = !program.is_free(rank),
                .called = std::vector<std::size_t>(program.groups().size())};
  for (const std::size_t group : program.order_of(rank))
    if (script.blocking || group % kThreads == thread) script.order.push_back(group);
  for (const std::size_t group : script.order) {
    script.works.push_back(program.groups()[group].calls[script.called[group]++]->post(communicators[group]));
    if (!script.blocking) continue;
    if (const Status done = script.works.back().wait(); !done.ok()) return done.text();
  }
  return first_error(script.works);
}

std::string run_rank(Runtime& runtime, const RandomLanes& program, std::uint64_t first_id) {
  const Rank rank = runtime.world().rank();
  std::vector<Communicator> communicators = program.communicators_of(runtime, rank, first_id);
  std::vector<std::string> wrong(program.is_free(rank) ? kThreads : 1);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < wrong.size(); ++i)
    threads.emplace_back([&, i] { wrong[i] = run_thread(program, communicators, rank, i); });
  wrong[0] = run_thread(program, communicators, rank, 0);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : wrong)
    if (!one.empty()) return one;
  if (const Status met = runtime.world().barrier().wait(); !met.ok()) return met.text();
  return {};
}

std::string run_threads(const std::string& transport, std::uint64_t first, std::uint64_t seeds) {
  std::vector<std::unique_ptr<RandomLanes>> programs;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed)
    programs.push_back(std::make_unique<RandomLanes>(kRanks, seed));
  const std::string wrong = run_ranks(
      {.ranks = kRanks, .transport = transport, .settings = {{Setting::slot_bytes, "4096"}}}, [&](Runtime& runtime) {
        for (std::uint64_t i = 0; i < seeds; ++i)
          if (const std::string error = run_rank(runtime, *programs[i], kFirstId + i * RandomLanes::kCommunicatorsMax);
              !error.empty())
            return "seed " + std::to_string(first + i) + ": " + error;
        return std::string();
      });
  if (!wrong.empty()) return wrong;
  for (const auto& program : programs)
    if (const std::string error = program->check(); !error.empty()) return error;
  return {};
}

int run(const std::string& transport, std::uint64_t seeds, std::uint64_t first, std::size_t shared_slots) {
  std::string wrong;
  if (transport != "loop") {
    wrong = run_threads(transport, first, seeds);
  } else {
    for (std::uint64_t seed = first; seed < first + seeds && wrong.empty(); ++seed)
      wrong = run_loop(seed, shared_slots);
  }
  if (shared_slots != 0) {
    std::printf("broken on purpose: %s\n", wrong.empty() ? "not seen" : wrong.c_str());
    return wrong.find("nothing moves any more") == std::string::npos ? 1 : 0;
  }
  std::printf("%s: %s\n", transport.c_str(),
              wrong.empty() ? (std::to_string(seeds) + " programs ended right").c_str() : wrong.c_str());
  return wrong.empty() ? 0 : 1;
}

}  // namespace
}  // namespace sluice::test

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: random_lanes_test loop|shm|tcp SEEDS [FIRST] [SHARED_SLOTS]\n"), 2;
  const auto number = [&](int at, std::uint64_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  return sluice::test::run(argv[1], number(2, 1), number(3, 1), number(4, 0));
}
