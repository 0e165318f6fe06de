#include "bench/peers/loop.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>

namespace peers {
namespace {

constexpr std::size_t kRounds = 3;          // of a check
constexpr std::size_t kWarmUpFraction = 8;  // of the iterations of a batch, untimed before it

// Each rank's thread on a core of its own, if there are enough.
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

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

// The pairs of buffers of one case.
struct Pairs {
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t in_stride = 0;
  std::size_t out_stride = 0;
  std::size_t count = 1;
  std::size_t next = 0;

  float* in_at(std::size_t pair) const { return reinterpret_cast<float*>(in + pair * in_stride); }
  float* out_at(std::size_t pair) const { return reinterpret_cast<float*>(out + pair * out_stride); }
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
    const std::size_t larger = std::max(work_.in_count(), work_.out_count()) * sizeof(float);
    const std::size_t grain = larger < kPage ? 64 : kPage;
    pairs_.in_stride = round_up(work_.in_count() * sizeof(float), grain);
    pairs_.out_stride = round_up(work_.out_count() * sizeof(float), grain);
    pairs_.count = cold ? std::max<std::size_t>(1, kColdBytes / (pairs_.in_stride + pairs_.out_stride)) : 1;
    pairs_.in = static_cast<std::byte*>(library_.allocate(pairs_.count * pairs_.in_stride));
    pairs_.out = static_cast<std::byte*>(library_.allocate(pairs_.count * pairs_.out_stride));
    if (pairs_.in == nullptr || pairs_.out == nullptr) return false;
    for (std::size_t pair = 0; pair < pairs_.count; ++pair) fill(work_, 0, pairs_.in_at(pair), pairs_.out_at(pair));
    return true;
  }

  // Goes through all rounds whatever comes out, for the other ranks do too.
  std::string check() {
    std::string first;
    for (std::size_t round = 0; round < kRounds; ++round) {
      const std::size_t pair = round % 2 == 0 ? 0 : pairs_.count - 1;
      fill(work_, round, pairs_.in_at(pair), pairs_.out_at(pair));
      if (!library_.barrier() || !library_.run(work_, pairs_.in_at(pair), pairs_.out_at(pair)))
        return "error " + library_.problem();
      if (first.empty()) first = fault(work_, round, pairs_.out_at(pair));
    }
    return first.empty() ? "ok" : "wrong " + first;
  }

  bool iterate(std::size_t iterations) {
    std::size_t pair = pairs_.next;
    for (std::size_t i = 0; i < iterations; ++i) {
      if (!library_.run(work_, pairs_.in_at(pair), pairs_.out_at(pair))) return false;
      if (++pair == pairs_.count) pair = 0;
    }
    pairs_.next = pair;
    return true;
  }

  std::string time(std::size_t iterations) {
    using Clock = std::chrono::steady_clock;
    if (!iterate(1 + iterations / kWarmUpFraction) || !library_.barrier()) return "error " + library_.problem();
    const auto begin = Clock::now();
    if (!iterate(iterations)) return "error " + library_.problem();
    const std::chrono::duration<double, std::nano> all = Clock::now() - begin;
    return "time " + std::to_string(all.count() / static_cast<double>(iterations));
  }

  Library& library_;
  std::string ready_for_;
  Work work_;
  Pairs pairs_;
};

}  // namespace

int serve(Library& library, const std::string& directory) {
  const std::string stem = directory + '/' + std::to_string(library.place().rank);
  std::ifstream commands(stem + ".commands");
  std::ofstream answers(stem + ".answers");
  stay_on_a_core(library.place());
  answers << "ready " << library.name() << std::endl;
  Server server(library);
  for (std::string line; answers && std::getline(commands, line);) answers << server.answer(line) << std::endl;
  library.release();
  return answers ? 0 : 1;
}

}  // namespace peers
