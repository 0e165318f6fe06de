#include "tools/tune/timed_rank.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace sluice::tools {
namespace {

constexpr std::size_t kPage = 4096;
constexpr int kOperationsMax = 1000;  // of one sample
constexpr int kProbeSamples = 9;
constexpr int kPingPongs = 200;  // of 8 bytes, in one sample

struct Free {
  void operator()(float* memory) const { std::free(memory); }
};
using Elements = std::unique_ptr<float, Free>;

Result<Elements> allocate(std::size_t bytes) {
  Elements memory(static_cast<float*>(std::aligned_alloc(kPage, (bytes / kPage + 1) * kPage)));
  if (memory == nullptr)
    return Error{Code::out_of_resource, "no memory for a buffer of " + format_bytes(bytes) + " bytes"};
  std::fill_n(memory.get(), bytes / sizeof(float), 0.F);  // zeros stay zeros, whatever is summed
  return memory;
}

double now() { return std::chrono::duration<double>(RealClock::instance().now()).count(); }

class TimedRank {
 public:
  TimedRank(const Sweep& sweep, Communicator& world, Elements in, Elements out)
      : sweep_(sweep), world_(world), in_(std::move(in)), out_(std::move(out)) {}

  Status time_cases(std::span<double> results);
  // Ranks 0 and 1 send to and fro; the others wait.
  Result<double> one_way(std::size_t bytes, int times);

 private:
  // Cases first..last-1 are alternatives to each other.
  struct Alternatives {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  std::vector<Alternatives> groups() const;
  Work post(const SweepCase& one);
  Result<std::vector<double>> guess();
  Result<double> time_once(const SweepCase& one, int operations);
  // The slowest rank's, at every rank.
  Status slowest(std::vector<double>& seconds);

  const Sweep& sweep_;
  Communicator& world_;
  Elements in_;
  Elements out_;
};

Work TimedRank::post(const SweepCase& one) {
  CallOptions options;
  options.algorithm = std::string(one.algorithm->name);
  options.order = sweep_.order;
  const std::size_t elements = one.bytes / sizeof(float);
  const std::size_t share = elements / static_cast<std::size_t>(world_.ranks());
  const auto buffers = [&](std::size_t count) { return InOut{in_.get(), out_.get(), count, DataType::float32}; };
  switch (one.algorithm->collective) {
    case Collective::all_reduce: return world_.all_reduce(buffers(elements), ReduceOp::sum, options);
    case Collective::reduce_scatter: return world_.reduce_scatter(buffers(share), ReduceOp::sum, options);
    case Collective::all_gather: return world_.all_gather(buffers(share), options);
    case Collective::broadcast: return world_.broadcast(buffers(elements), 0, options);
    case Collective::reduce: return world_.reduce(buffers(elements), ReduceOp::sum, 0, options);
    case Collective::gather: return world_.gather(buffers(share), 0, options);
    case Collective::scatter: return world_.scatter(buffers(share), 0, options);
    case Collective::all_to_all: return world_.all_to_all(buffers(share), options);
  }
  return Work(Status(Code::unsupported, "a collective that can't be timed"));
}

Result<double> TimedRank::time_once(const SweepCase& one, int operations) {
  SLUICE_TRY(world_.barrier().wait());
  const double began = now();
  for (int i = 0; i < operations; ++i) SLUICE_TRY(post(one).wait());
  return (now() - began) / operations;
}

Status TimedRank::slowest(std::vector<double>& seconds) {
  return world_.all_reduce({seconds.data(), seconds.data(), seconds.size(), DataType::float64}, ReduceOp::max).wait();
}

std::vector<TimedRank::Alternatives> TimedRank::groups() const {
  std::vector<Alternatives> found;
  for (std::size_t i = 0; i < sweep_.cases.size(); ++i) {
    const SweepCase& one = sweep_.cases[i];
    const SweepCase& first = sweep_.cases[found.empty() ? 0 : found.back().first];
    const bool same = one.bytes == first.bytes && one.algorithm->collective == first.algorithm->collective;
    if (found.empty() || !same) found.push_back({i, i});
    found.back().last = i + 1;
  }
  return found;
}

// How long an operation of each case takes, roughly; their programs are made on the way.
Result<std::vector<double>> TimedRank::guess() {
  std::vector<double> guesses;
  for (const SweepCase& one : sweep_.cases) {
    SLUICE_TRY(post(one).wait());
    SLUICE_TRY_ASSIGN(const double taken, time_once(one, 2));
    guesses.push_back(taken);
  }
  SLUICE_TRY(slowest(guesses));
  return guesses;
}

// Round after round over all cases, so that what disturbs the machine for a while spoils few samples of each.
Status TimedRank::time_cases(std::span<double> results) {
  if (sweep_.cases.empty()) return {};
  SLUICE_TRY_ASSIGN(const std::vector<double> guesses, guess());
  const auto samples = static_cast<std::size_t>(sweep_.samples);
  std::vector<double> taken(sweep_.cases.size() * samples);
  for (std::size_t sample = 0; sample < samples; ++sample)
    for (const auto& [first, last] : groups()) {
      SLUICE_TRY(post(sweep_.cases[first]).wait());  // the caches hold what they can of this size
      for (std::size_t turn = 0; turn < last - first; ++turn) {
        const std::size_t at = first + (turn + sample) % (last - first);
        const double wanted = sweep_.sample_seconds / std::max(guesses[at], 1e-9);
        const int operations = static_cast<int>(std::clamp<double>(wanted, 1, kOperationsMax));
        SLUICE_TRY_ASSIGN(taken[at * samples + sample], time_once(sweep_.cases[at], operations));
      }
    }
  SLUICE_TRY(slowest(taken));
  for (std::size_t at = 0; at < sweep_.cases.size(); ++at) {
    const auto begin = taken.begin() + static_cast<std::ptrdiff_t>(at * samples);
    results[at] = median({begin, begin + static_cast<std::ptrdiff_t>(samples)});
  }
  return {};
}

Result<double> TimedRank::one_way(std::size_t bytes, int times) {
  const std::size_t count = bytes / sizeof(float);
  std::vector<double> taken;
  for (int sample = 0; sample < kProbeSamples; ++sample) {
    SLUICE_TRY(world_.barrier().wait());
    const double began = now();
    for (int i = 0; i < times && world_.rank() < 2; ++i) {
      const Rank peer = 1 - world_.rank();
      const auto send = [&] { return world_.send(in_.get(), count, DataType::float32, peer).wait(); };
      const auto receive = [&] { return world_.receive(out_.get(), count, DataType::float32, peer).wait(); };
      SLUICE_TRY(world_.rank() == 0 ? send() : receive());
      SLUICE_TRY(world_.rank() == 0 ? receive() : send());
    }
    taken.push_back((now() - began) / times / 2);
  }
  SLUICE_TRY(slowest(taken));
  return median(taken);
}

}  // namespace

Status time_as_rank(const Sweep& sweep, Communicator& world, std::span<double> results) {
  std::size_t bytes = kProbeBytes;
  for (const SweepCase& one : sweep.cases) bytes = std::max(bytes, one.bytes);
  SLUICE_TRY_ASSIGN(Elements in, allocate(bytes));
  SLUICE_TRY_ASSIGN(Elements out, allocate(bytes));
  TimedRank timed(sweep, world, std::move(in), std::move(out));
  SLUICE_TRY(timed.time_cases(results));
  if (!sweep.probe) return {};
  SLUICE_TRY_ASSIGN(const double latency, timed.one_way(8, kPingPongs));
  SLUICE_TRY_ASSIGN(const double large, timed.one_way(kProbeBytes, 2));
  results[sweep.cases.size()] = latency;
  results[sweep.cases.size() + 1] = static_cast<double>(kProbeBytes) / std::max(large - latency, large / 2);
  return {};
}

}  // namespace sluice::tools
