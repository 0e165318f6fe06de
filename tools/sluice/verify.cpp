#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "tools/sluice/commands.h"
#include "tools/sluice/proofs.h"
#include "tools/sluice/together.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kFaultsShown = 40;

// What is said of one algorithm of one collective.
struct Line {
  const Algorithm* algorithm = nullptr;
  int least_ranks = 0;
  int most_ranks = 0;
  std::uint64_t schedules = 0;
  std::uint64_t canonical = 0;  // of them
  std::uint64_t programs = 0;
  std::uint64_t refused = 0;
};

struct Summary {
  std::vector<Line> lines;
  std::vector<std::string> faults;
  Line totals;
};

void count(Line& line, const ProofTask& task, const Result<ProofReport>& result) {
  line.least_ranks = line.schedules + line.refused == 0 ? task.ranks : std::min(line.least_ranks, task.ranks);
  line.most_ranks = std::max(line.most_ranks, task.ranks);
  if (!result.ok()) {
    ++line.refused;
    return;
  }
  ++line.schedules;
  line.programs += result->programs;
  if (is_reduction(task.algorithm->collective) && result->proof.order == OrderClass::canonical) ++line.canonical;
}

void take(Summary& summary, const ProofTask& task, const Result<ProofReport>& result) {
  const auto found = std::find_if(summary.lines.begin(), summary.lines.end(),
                                  [&](const Line& one) { return one.algorithm == task.algorithm; });
  count(*found, task, result);
  count(summary.totals, task, result);
  if (!result.ok()) summary.faults.push_back(describe(task) + ": " + result.error().text);
}

// The largest first, so that no thread is left alone with one at the end.
Summary prove_all(std::vector<ProofTask> tasks, const VerifyOptions& options) {
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const ProofTask& a, const ProofTask& b) { return a.ranks > b.ranks; });
  Summary summary;
  for (const Algorithm& one : all_algorithms())
    if (std::any_of(tasks.begin(), tasks.end(), [&](const ProofTask& task) { return task.algorithm == &one; }))
      summary.lines.push_back({.algorithm = &one});
  std::mutex mutex;                  // guards summary
  std::atomic<std::size_t> next{0};  // hands out tasks; nothing is published through it
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      const auto result = prove(tasks[i], !options.schedules_only);
      const std::lock_guard lock(mutex);
      take(summary, tasks[i], result);
    }
  };
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned jobs = options.jobs > 0 ? static_cast<unsigned>(options.jobs) : cores;
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& one : threads) one.join();
  return summary;
}

Json line_json(const Line& line) {
  Json json;
  if (line.algorithm != nullptr) {
    json["collective"] = std::string(name(line.algorithm->collective));
    json["algorithm"] = std::string(line.algorithm->name);
  }
  json["least_ranks"] = line.least_ranks;
  json["most_ranks"] = line.most_ranks;
  json["schedules_proved"] = line.schedules;
  json["of_them_canonical"] = line.canonical;
  json["programs_proved"] = line.programs;
  json["refused"] = line.refused;
  return json;
}

void print_summary(const Summary& summary, bool as_json) {
  if (as_json) {
    Json json = {{"algorithms", Json::array()}, {"faults", summary.faults}, {"totals", line_json(summary.totals)}};
    for (const Line& line : summary.lines) json["algorithms"].push_back(line_json(line));
    std::printf("%s\n", json.dump(1).c_str());
    return;
  }
  const auto row = [](const auto&... cell) {
    return fmt::format("{:<15} {:<20} {:>9} {:>10} {:>10} {:>10} {:>8}\n", cell...);
  };
  std::string out = row("collective", "algorithm", "ranks", "schedules", "canonical", "programs", "refused");
  const auto ranks = [](const Line& line) { return fmt::format("{}..{}", line.least_ranks, line.most_ranks); };
  for (const Line& line : summary.lines)
    out += row(name(line.algorithm->collective), line.algorithm->name, ranks(line), line.schedules, line.canonical,
               line.programs, line.refused);
  out += row("all", "", ranks(summary.totals), summary.totals.schedules, summary.totals.canonical,
             summary.totals.programs, summary.totals.refused);
  std::fputs(out.c_str(), stdout);
  const std::size_t shown = std::min(summary.faults.size(), kFaultsShown);
  for (std::size_t i = 0; i < shown; ++i) std::printf("REFUSED %s\n", summary.faults[i].c_str());
  if (shown < summary.faults.size()) std::printf("... and %zu more (--json has all)\n", summary.faults.size() - shown);
}

int verify_all(const VerifyOptions& options) {
  const auto range = parse_rank_range(options.ranks);
  if (!range.ok()) {
    print_error("verify", range.error());
    return kUsage;
  }
  if (!options.collective.empty() && !parse_collective(options.collective)) {
    print_error("verify", {Code::invalid_argument, "--collective: '" + options.collective + "' is no collective"});
    return kUsage;
  }
  std::vector<ProofTask> tasks = proof_tasks(*range, options.collective, options.algorithm);
  if (tasks.empty()) {
    print_error("verify", {Code::invalid_argument, "no algorithm fits --collective, --algorithm and --ranks"});
    return kUsage;
  }
  const Summary summary = prove_all(std::move(tasks), options);
  print_summary(summary, options.json);
  return summary.totals.refused == 0 ? 0 : kFailed;
}

// Of a file that was proved.
struct Said {
  Json json = {};
  std::string text = {};
};

Result<Said> prove_together(const std::string& text) {
  SLUICE_TRY_ASSIGN(const Together all, parse_together(text));
  SLUICE_TRY(verify_composition(all.operations, all.threads, {}));
  return Said{.json = {{"operations", all.operations.size()}, {"threads", all.threads.size()}},
              .text = fmt::format("proved, {} operations of {} threads end right in every order of events",
                                  all.operations.size(), all.threads.size())};
}

Result<Said> prove_text(const std::string& text) {
  SLUICE_TRY_ASSIGN(const Schedule schedule, parse_schedule(text));
  SLUICE_TRY_ASSIGN(const ProofReport report, prove_schedule(schedule, true));
  return Said{.json = {{"order", std::string(name(report.proof.order))},
                       {"in_place", report.proof.in_place},
                       {"steps", report.steps}},
              .text = fmt::format("proved, {} steps, order {}, {}", report.steps, name(report.proof.order),
                                  report.proof.in_place ? "also in place" : "not in place")};
}

Result<Said> verify_file(const std::string& path, bool together) {
  std::ifstream file(path);
  if (!file) return Error{Code::invalid_argument, "can't be read"};
  std::ostringstream text;
  text << file.rdbuf();
  return together ? prove_together(text.str()) : prove_text(text.str());
}

int verify_files(const VerifyOptions& options) {
  Json json = Json::array();
  bool all_proved = true;
  for (const std::string& path : options.files) {
    const auto said = verify_file(path, options.together);
    all_proved &= said.ok();
    Json one = {{"file", path}, {"proved", said.ok()}};
    std::string text = path + ": ";
    if (said.ok()) {
      one.update(said->json);
      text += said->text;
    } else {
      one["fault"] = said.error().text;
      text += "REFUSED: " + said.error().text;
    }
    json.push_back(std::move(one));
    if (!options.json) std::printf("%s\n", text.c_str());
  }
  if (options.json) std::printf("%s\n", json.dump(1).c_str());
  return all_proved ? 0 : kFailed;
}

}  // namespace

int verify_command(const VerifyOptions& options) {
  if (options.all != options.files.empty()) {
    print_error("verify", {Code::invalid_argument, "give schedule files, or --all"});
    return kUsage;
  }
  if (options.all && options.together) {
    print_error("verify", {Code::invalid_argument, "--together needs files, which --all has not"});
    return kUsage;
  }
  return options.all ? verify_all(options) : verify_files(options);
}

}  // namespace sluice::tools
