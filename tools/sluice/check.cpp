#include "tools/sluice/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/sluice/commands.h"
#include "tools/tune/sweep.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSamples = 7;
constexpr int kQuickSamples = 3;
constexpr double kQuickSeconds = 100e-6;

std::vector<const Alternative*> usable(const Answer& answer) {
  std::vector<const Alternative*> found;
  for (const Alternative& one : answer.alternatives)
    if (one.refused.empty()) found.push_back(&one);
  return found;
}

Result<std::vector<Answer>> all_answers(const Question& question, const ExplainOptions& options,
                                        const Grounds& grounds) {
  std::vector<Answer> answers;
  for (const Collective collective : question.collectives)
    for (const std::size_t bytes : question.sizes) {
      SLUICE_TRY_ASSIGN(Answer one,
                        answer(collective, message_bytes(collective, options.ranks, bytes), options, grounds));
      const bool twice =
          !answers.empty() && answers.back().collective == collective && answers.back().bytes == one.bytes;
      if (!twice) answers.push_back(std::move(one));
    }
  return answers;
}

Result<std::vector<std::vector<double>>> time_all(const std::vector<Answer>& answers, const ExplainOptions& options,
                                                  const Grounds& grounds) {
  Sweep sweep{.link = grounds.kind, .ranks = options.ranks, .config = grounds.config, .cases = {}};
  sweep.samples = options.quick ? kQuickSamples : kSamples;
  if (options.quick) sweep.sample_seconds = kQuickSeconds;
  if (options.order == "canonical") sweep.order = Order::canonical;
  for (const Answer& one : answers)
    for (const Alternative* alternative : usable(one))
      sweep.cases.push_back({alternative->prediction.algorithm, one.bytes});
  SLUICE_TRY_ASSIGN(const SweepResult result, run_sweep(sweep));
  std::vector<std::vector<double>> seconds;
  auto next = result.seconds.begin();
  for (const Answer& one : answers) {
    const auto end = next + static_cast<std::ptrdiff_t>(usable(one).size());
    seconds.emplace_back(next, end);
    next = end;
  }
  return seconds;
}

Json checked_json(const Checked& one) {
  return {{"collective", std::string(name(one.collective))},
          {"bytes", one.bytes},
          {"chosen", std::string(one.chosen->name)},
          {"expected_seconds", one.expected_seconds},
          {"chosen_seconds", one.chosen_seconds},
          {"best", std::string(one.best->name)},
          {"best_seconds", one.best_seconds},
          {"ratio", one.ratio()}};
}

std::string checked_text(const Checked& one) {
  return fmt::format("{:<15} {:>6}  {:<20} {:>12.2f} {:>12.2f}  {:<20} {:>12.2f} {:>7.2f}\n", name(one.collective),
                     format_bytes(one.bytes), one.chosen->name, one.expected_seconds * 1e6, one.chosen_seconds * 1e6,
                     one.best->name, one.best_seconds * 1e6, one.ratio());
}

std::string report(const std::vector<Checked>& wrong, std::size_t checked, const ExplainOptions& options,
                   const Grounds& grounds) {
  if (options.json) {
    Json json = {{"link", std::string(name(grounds.kind))},
                 {"ranks", options.ranks},
                 {"tuning", grounds.tuning.file == nullptr ? Json(nullptr) : Json(grounds.tuning.path)},
                 {"checked", checked},
                 {"mispredicted", Json::array()}};
    for (const Checked& one : wrong) json["mispredicted"].push_back(checked_json(one));
    return json.dump(1) + "\n";
  }
  std::string text = fmt::format(
      "{} choices timed, {} ranks over {}, by {}: {} are not within {:.0f}% of the fastest\n", checked, options.ranks,
      name(grounds.kind), grounds.link.measures == nullptr ? "predictions" : "measured times", wrong.size(),
      (kAsGood - 1) * 100);
  if (wrong.empty()) return text;
  text += fmt::format("{:<15} {:>6}  {:<20} {:>12} {:>12}  {:<20} {:>12} {:>7}\n", "collective", "bytes", "chosen",
                      "expected us", "took us", "fastest", "took us", "ratio");
  for (const Checked& one : wrong) text += checked_text(one);
  return text;
}

Result<int> check(const ExplainOptions& options) {
  if (options.ranks < 2) return Error{Code::invalid_argument, "--check needs --ranks of 2 or more"};
  SLUICE_TRY_ASSIGN(const Question question, read_question(options));
  SLUICE_TRY_ASSIGN(const Grounds grounds, find_grounds(options));
  if (grounds.config.text(Setting::transport) == "loop")
    return Error{Code::unsupported, "--check times real links: SLUICE_TRANSPORT must not be loop"};
  SLUICE_TRY_ASSIGN(const std::vector<Answer> answers, all_answers(question, options, grounds));
  SLUICE_TRY_ASSIGN(const auto seconds, time_all(answers, options, grounds));
  const std::vector<Checked> checked = compare(answers, seconds);
  const std::vector<Checked> wrong = mispredicted(checked);
  std::fputs(report(wrong, checked.size(), options, grounds).c_str(), stdout);
  const bool fails = options.fail_above != 0 && !wrong.empty() && wrong.front().ratio() > options.fail_above;
  return fails ? kFailed : 0;
}

}  // namespace

std::vector<Checked> compare(const std::vector<Answer>& answers, const std::vector<std::vector<double>>& seconds) {
  std::vector<Checked> checked;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto alternatives = usable(answers[i]);
    Checked one;
    one.collective = answers[i].collective;
    one.bytes = answers[i].bytes;
    one.chosen = answers[i].chosen;
    for (std::size_t k = 0; k < alternatives.size(); ++k) {
      const Prediction& weighed = alternatives[k]->prediction;
      if (weighed.algorithm == one.chosen) {
        one.expected_seconds = weighed.seconds;
        one.chosen_seconds = seconds[i][k];
      }
      if (one.best == nullptr || seconds[i][k] < one.best_seconds) {
        one.best = weighed.algorithm;
        one.best_seconds = seconds[i][k];
      }
    }
    if (one.chosen_seconds > 0 && one.best_seconds > 0) checked.push_back(one);
  }
  return checked;
}

std::vector<Checked> mispredicted(std::vector<Checked> checked) {
  std::erase_if(checked, [](const Checked& one) { return one.ratio() <= kAsGood; });
  std::stable_sort(checked.begin(), checked.end(),
                   [](const Checked& a, const Checked& b) { return a.ratio() > b.ratio(); });
  return checked;
}

int check_command(const ExplainOptions& options) {
  const Result<int> code = check(options);
  if (code.ok()) return *code;
  print_error("explain", code.error());
  return code.error().code == Code::invalid_argument || code.error().code == Code::unsupported ? kUsage : kFailed;
}

}  // namespace sluice::tools
