#include "bench/peers/loop.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace peers {
namespace {

constexpr std::size_t kRounds = 3;          // of a check
constexpr std::size_t kWarmUpFraction = 8;  // of the iterations of a batch, untimed before it

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// The pairs of buffers of one case.
struct Pairs {
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  PairLayout layout;
  std::size_t next = 0;
  bool seen = false;  // every page of them, by this library

  float* in_at(std::size_t pair) const { return reinterpret_cast<float*>(in + pair * layout.in_stride); }
  float* out_at(std::size_t pair) const { return reinterpret_cast<float*>(out + pair * layout.out_stride); }
};

// What this process has used so far, in seconds.
struct Usage {
  double time = 0;
  double core = 0;

  static Usage now() {
    const auto seconds = [](clockid_t clock) {
      timespec at{};
      clock_gettime(clock, &at);
      return static_cast<double>(at.tv_sec) + 1e-9 * static_cast<double>(at.tv_nsec);
    };
    return {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
  }
};

class Server {
 public:
  explicit Server(Library& library) : library_(library) {}

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, op, heat;
    std::size_t bytes = 0, iterations = 0;
    words >> verb >> op >> bytes >> heat >> iterations;
    if (verb == "free") return release();
    if (verb == "wait") return wait(std::chrono::milliseconds(std::atoi(op.c_str())));
    if (verb != "check" && verb != "time") return "error '" + line + "' is no command";
    if (const std::string why = prepare(op, bytes, heat == "cold"); !why.empty()) return why;
    return verb == "check" ? check() : time(std::max<std::size_t>(1, iterations));
  }

 private:
  std::string release() {
    library_.release();
    work_ = {};
    pairs_ = {};
    ready_for_.clear();
    return "ok";
  }

  // Makes the case the current one. Returns the answer if that can't be.
  std::string prepare(const std::string& name, std::size_t bytes, bool cold) {
    const std::string wanted = name + ' ' + std::to_string(bytes) + (cold ? " cold" : " warm");
    if (wanted == ready_for_) return {};
    release();
    const auto op = parse_op(name);
    if (!op) return "error there is no operation '" + name + "'";
    if (!library_.can(*op)) return "unsupported " + library_.name() + " has no " + name;
    const auto work = make_work(*op, bytes, library_.place());
    if (!work) return "unsupported " + std::to_string(bytes) + " bytes do not divide among the ranks";
    work_ = *work;
    if (!allocate(cold)) return "error memory: " + library_.problem();
    ready_for_ = wanted;
    return {};
  }

  bool allocate(bool cold) {
    const PairLayout layout = pairs_.layout = layout_of(work_, cold);
    pairs_.in = static_cast<std::byte*>(library_.allocate(layout.pairs * layout.in_stride));
    pairs_.out = static_cast<std::byte*>(library_.allocate(layout.pairs * layout.out_stride));
    if (pairs_.in == nullptr || pairs_.out == nullptr) return false;
    for (std::size_t pair = 0; pair < pairs_.layout.pairs; ++pair)
      fill(work_, 0, pairs_.in_at(pair), pairs_.out_at(pair));
    return true;
  }

  // Goes through all rounds whatever comes out, for the other ranks do too.
  std::string check() {
    std::string first;
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::size_t pair = round % 2 == 0 ? 0 : pairs_.layout.pairs - 1;
      fill(work_, round, pairs_.in_at(pair), pairs_.out_at(pair));
      if (!library_.barrier() || !library_.run(work_, pairs_.in_at(pair), pairs_.out_at(pair)))
        return "error " + library_.problem();
      if (first.empty()) first = fault(work_, round, pairs_.out_at(pair));
    }
    return first.empty() ? "ok" : "wrong " + first;
  }

  // Each page of another process is a page fault the first time.
  bool see_all_pages() {
    const std::size_t step =
        std::max<std::size_t>(1, kPage / std::max(pairs_.layout.in_stride, pairs_.layout.out_stride));
    for (std::size_t pair = 0; pair < pairs_.layout.pairs && library_.maps_others() && !pairs_.seen; pair += step)
      if (!library_.run(work_, pairs_.in_at(pair), pairs_.out_at(pair))) return false;
    return pairs_.seen = true;
  }

  bool iterate(std::size_t iterations) {
    std::size_t pair = pairs_.next;
    for (std::size_t i = 0; i < iterations; ++i) {
      if (!library_.run(work_, pairs_.in_at(pair), pairs_.out_at(pair))) return false;
      if (++pair == pairs_.layout.pairs) pair = 0;
    }
    pairs_.next = pair;
    return true;
  }

  std::string time(std::size_t iterations) {
    using Clock = std::chrono::steady_clock;
    if (!see_all_pages() || !iterate(1 + iterations / kWarmUpFraction) || !library_.barrier())
      return "error " + library_.problem();
    const auto begin = Clock::now();
    if (!iterate(iterations)) return "error " + library_.problem();
    const std::chrono::duration<double, std::nano> all = Clock::now() - begin;
    return "time " + std::to_string(all.count() / static_cast<double>(iterations));
  }

  std::string wait(std::chrono::milliseconds delay) {
    if (!library_.barrier()) return "error " + library_.problem();
    if (library_.place().rank == 0) std::this_thread::sleep_for(delay);
    Usage begin;
    std::jthread later([&begin] {
      std::this_thread::sleep_for(std::chrono::milliseconds(kWaitGraceMs));
      begin = Usage::now();
    });
    if (!library_.barrier()) return "error " + library_.problem();
    const Usage end = Usage::now();
    later.join();
    if (library_.place().rank == 0) return "wait 0";
    return "wait " + std::to_string((end.core - begin.core) / (end.time - begin.time));
  }

  Library& library_;
  std::string ready_for_;
  Work work_;
  Pairs pairs_;
};

}  // namespace

PairLayout layout_of(const Work& work, bool cold) {
  const std::size_t in = work.in_count() * sizeof(float), out = work.out_count() * sizeof(float);
  const std::size_t grain = std::max(in, out) < kPage ? 64 : kPage;
  PairLayout layout{.in_stride = round_up(in, grain), .out_stride = round_up(out, grain), .pairs = 1};
  if (cold) layout.pairs = std::max<std::size_t>(1, kColdBytes / (layout.in_stride + layout.out_stride));
  return layout;
}

void stay_on_a_core(Place place) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 || CPU_COUNT(&allowed) < place.ranks) return;
  int left = place.rank;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

int serve_lines(const std::string& directory, int rank, const std::string& name,
                const std::function<std::string(const std::string& line)>& answer) {
  const std::string stem = directory + '/' + std::to_string(rank);
  std::ifstream commands(stem + ".commands");
  std::ofstream answers(stem + ".answers");
  answers << "ready " << name << std::endl;
  for (std::string line; answers && std::getline(commands, line);) answers << answer(line) << std::endl;
  return answers ? 0 : 1;
}

int serve(Library& library, const std::string& directory) {
  stay_on_a_core(library.place());
  Server server(library);
  const int result = serve_lines(directory, library.place().rank, library.name(),
                                 [&server](const std::string& line) { return server.answer(line); });
  library.release();
  return result;
}

}  // namespace peers
