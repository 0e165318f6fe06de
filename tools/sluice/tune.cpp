// sluice tune: a sweep for each kind of link and number of ranks, and the file made of them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "comm/tune/tuning_store.h"
#include "tools/sluice/answers.h"
#include "tools/sluice/commands.h"
#include "tools/tune/sweep.h"
#include "transport/topology/probe.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kRanksLeast = 4;  // measured whatever the machine has
constexpr int kRanksMost = 16;  // more only when asked for
constexpr int kRanksAsked = 64;
constexpr int kSamples = 15;
constexpr int kQuickSamples = 9;
constexpr double kQuickSeconds = 100e-6;
constexpr double kBusy = 0.5;  // load for each thread of the machine, over the last minute

struct Plan {
  std::vector<int> ranks;
  std::vector<std::size_t> sizes;
  std::vector<LinkKind> links{LinkKind::processes, LinkKind::tcp, LinkKind::threads};
};

Result<std::vector<int>> read_ranks(const TuneOptions& options, std::size_t threads) {
  std::vector<int> ranks;
  const int cores = static_cast<int>(std::min<std::size_t>(threads, kRanksMost));
  if (options.ranks.empty()) {
    for (int one = 2; one <= std::max(cores, kRanksLeast); one *= 2) ranks.push_back(one);
    if (options.quick) ranks.resize(1);
    return ranks;
  }
  std::istringstream words(options.ranks);
  for (std::string word; std::getline(words, word, ',');) {
    int one = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), one);
    if (error != std::errc() || end != word.data() + word.size() || one < 2 || one > kRanksAsked)
      return Error{Code::invalid_argument, "--ranks is '" + options.ranks + "', but must be numbers between 2 and " +
                                               std::to_string(kRanksAsked) + ", as 2,4,8"};
    ranks.push_back(one);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

Result<std::vector<std::size_t>> read_sizes(const TuneOptions& options) {
  std::vector<std::size_t> sizes;
  if (options.bytes.empty()) {
    const std::size_t factor = options.quick ? 16 : 4;
    const std::size_t most = std::size_t{16} << (options.quick ? 16 : 20);
    for (std::size_t bytes = options.quick ? 64 : 8; bytes < most; bytes *= factor) sizes.push_back(bytes);
    sizes.push_back(most);
    return sizes;
  }
  SLUICE_TRY_ASSIGN(sizes, parse_sizes("--bytes", options.bytes));
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

Result<Plan> read_plan(const TuneOptions& options, const Topology& machine) {
  Plan plan;
  SLUICE_TRY_ASSIGN(plan.ranks, read_ranks(options, machine.count(NodeKind::thread)));
  SLUICE_TRY_ASSIGN(plan.sizes, read_sizes(options));
  if (options.links.empty()) return plan;
  plan.links.clear();
  std::istringstream words(options.links);
  for (std::string word; std::getline(words, word, ',');) {
    const auto kind = parse_link_kind(word);
    if (!kind || std::ranges::count(plan.links, *kind) != 0)
      return Error{Code::invalid_argument, "--links is '" + options.links +
                                               "', but must be threads, processes, tcp, or some of them, each once"};
    plan.links.push_back(*kind);
  }
  return plan;
}

std::vector<SweepCase> cases_of(int ranks, const std::vector<std::size_t>& sizes) {
  std::vector<SweepCase> cases;
  for (const Collective collective : all_collectives()) {
    std::size_t before = 0;
    for (const std::size_t wanted : sizes) {
      const std::size_t bytes = message_bytes(collective, ranks, wanted);
      if (bytes == before) continue;
      before = bytes;
      for (const Algorithm& one : all_algorithms())
        if (one.collective == collective && one.supports(ranks)) cases.push_back({&one, bytes});
    }
  }
  return cases;
}

// The times of one sweep, as curves behind those that are there.
void add_curves(const Sweep& sweep, const SweepResult& result, LinkMeasures& link) {
  for (const Algorithm& algorithm : all_algorithms()) {
    TimeCurve curve{.algorithm = &algorithm, .ranks = sweep.ranks, .points = {}};
    for (std::size_t i = 0; i < sweep.cases.size(); ++i)
      if (sweep.cases[i].algorithm == &algorithm)
        curve.points.push_back({sweep.cases[i].bytes, std::max(result.seconds[i], 1e-9)});
    if (!curve.points.empty()) link.curves.push_back(std::move(curve));
  }
}

Result<LinkMeasures> measure_link(LinkKind kind, const Plan& plan, const TuneOptions& options, const Config& config) {
  LinkMeasures link;
  link.combine_bytes_per_second = measure_combine_rate();
  for (const int ranks : plan.ranks) {
    Sweep sweep{.link = kind, .ranks = ranks, .config = config, .cases = cases_of(ranks, plan.sizes)};
    sweep.samples = options.quick ? kQuickSamples : kSamples;
    if (options.quick) sweep.sample_seconds = kQuickSeconds;
    sweep.probe = ranks == plan.ranks.front();
    SLUICE_TRY_ASSIGN(const SweepResult result, run_sweep(sweep));
    add_curves(sweep, result, link);
    if (!sweep.probe) continue;
    link.latency_seconds = std::max(result.latency_seconds, 1e-9);
    link.bytes_per_second = result.bytes_per_second;
  }
  std::ranges::stable_sort(link.curves, {}, [](const TimeCurve& one) { return one.algorithm->collective; });
  return link;
}

// From a size on, this algorithm is the fastest of those measured.
struct Crossover {
  std::uint64_t bytes = 0;
  std::string_view algorithm;
  double seconds = 0;
};

std::vector<Crossover> crossovers(const LinkMeasures& link, Collective collective, int ranks) {
  std::vector<Crossover> found;
  std::vector<const TimeCurve*> curves;
  for (const TimeCurve& one : link.of(collective))
    if (one.ranks == ranks) curves.push_back(&one);
  for (std::size_t i = 0; !curves.empty() && i < curves.front()->points.size(); ++i) {
    const TimeCurve* best =
        *std::ranges::min_element(curves, {}, [i](const TimeCurve* one) { return one->points[i].seconds; });
    if (found.empty() || found.back().algorithm != best->algorithm->name)
      found.push_back({best->points[i].bytes, best->algorithm->name, best->points[i].seconds});
  }
  return found;
}

std::string link_text(LinkKind kind, const LinkMeasures& link, const Plan& plan) {
  std::string text = fmt::format(
      "{}: {:.2f} us latency, {:.2f} GB/s, combining {:.2f} GB/s; the fastest, from a size on\n", name(kind),
      link.latency_seconds * 1e6, link.bytes_per_second / 1e9, link.combine_bytes_per_second / 1e9);
  for (const int ranks : plan.ranks)
    for (const Collective collective : all_collectives()) {
      text += fmt::format("  {:>2} ranks {:<15}", ranks, name(collective));
      for (const Crossover& one : crossovers(link, collective, ranks))
        text += fmt::format(" {} {} ({:.2f} us)", format_bytes(one.bytes), one.algorithm, one.seconds * 1e6);
      text += "\n";
    }
  return text;
}

Json link_json(LinkKind kind, const LinkMeasures& link, const Plan& plan) {
  Json json = {{"link", std::string(name(kind))},
               {"latency_seconds", link.latency_seconds},
               {"bytes_per_second", link.bytes_per_second},
               {"combine_bytes_per_second", link.combine_bytes_per_second},
               {"fastest", Json::array()}};
  for (const int ranks : plan.ranks)
    for (const Collective collective : all_collectives())
      for (const Crossover& one : crossovers(link, collective, ranks))
        json["fastest"].push_back({{"ranks", ranks},
                                   {"collective", std::string(name(collective))},
                                   {"from_bytes", one.bytes},
                                   {"algorithm", std::string(one.algorithm)},
                                   {"seconds", one.seconds}});
  return json;
}

// What others do meanwhile is measured with the rest, so it is said.
void warn_if_busy(std::size_t threads) {
  double load = 0;
  if (::getloadavg(&load, 1) != 1 || load <= kBusy * static_cast<double>(threads)) return;
  std::fprintf(stderr, "sluice tune: the machine is busy (load %.1f on %zu threads): run it again when it is idle\n",
               load, threads);
}

Status tune(const TuneOptions& options) {
  SLUICE_TRY_ASSIGN(const Topology machine, probe_topology());
  SLUICE_TRY_ASSIGN(const Plan plan, read_plan(options, machine));
  SLUICE_TRY_ASSIGN(const Config config, Config::load());
  MachineFile file{.machine = machine_fingerprint(machine), .description = describe_machine(machine), .links = {}};
  const std::string folder = tuning_folder();
  if (options.file.empty() && folder.empty())
    return {Code::invalid_argument, "neither XDG_CACHE_HOME nor HOME names a folder: say --file FILE"};
  const std::string path = options.file.empty() ? tuning_path(folder, file.machine) : options.file;
  warn_if_busy(machine.count(NodeKind::thread));
  Json json = {{"machine", file.description}, {"file", path}, {"links", Json::array()}};
  if (!options.json) std::printf("%s\n", file.description.c_str());
  for (const LinkKind kind : plan.links) {
    SLUICE_TRY_ASSIGN(file.link(kind), measure_link(kind, plan, options, config));
    json["links"].push_back(link_json(kind, *file.link(kind), plan));
    if (!options.json) std::fputs(link_text(kind, *file.link(kind), plan).c_str(), stdout);
    std::fflush(stdout);
  }
  // What is written must be what can be read.
  if (const auto again = parse_machine_file(print(file)); !again.ok())
    return {Code::system, "what was measured can't be kept: " + again.error().text};
  SLUICE_TRY(write_tuning(path, file));
  if (options.json)
    std::printf("%s\n", json.dump(1).c_str());
  else
    std::printf("written to %s\n", path.c_str());
  return {};
}

}  // namespace

int tune_command(const TuneOptions& options) {
  const Status status = tune(options);
  if (status.ok()) return 0;
  print_error("tune", status.error());
  return status.code() == Code::invalid_argument || status.code() == Code::unsupported ? kUsage : kFailed;
}

}  // namespace sluice::tools
