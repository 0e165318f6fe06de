#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/config.h"
#include "comm/communicator.h"
#include "comm/executor/runtime_state.h"
#include "comm/tune/tune.h"
#include "tools/launch/local_ranks.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

// One algorithm for one question: its cost in parts, or why it can't be used.
struct Alternative {
  const Algorithm* algorithm = nullptr;
  double rounds_seconds = 0;
  double transfer_seconds = 0;
  double combine_seconds = 0;
  std::string refused;
  double seconds() const { return rounds_seconds + transfer_seconds + combine_seconds; }
};

struct Answer {
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;
  const Algorithm* chosen = nullptr;
  std::string why;
  std::vector<Alternative> alternatives;  // those that can be used first, cheapest first
};

// Two ranks of this process join as a job would, and say what the tuner goes by.
Result<LinkModel> ask_link_model(const Config& config) {
  const RuntimeOptions options{.config = config, .join_deadline = config.duration(Setting::join_deadline)};
  if (config.text(Setting::transport) == "loop") {
    SLUICE_TRY_ASSIGN(const auto runtimes, Runtime::loop(2, 1, options));
    return runtimes.front()->state()->link_model({0, 1});
  }
  SLUICE_TRY_ASSIGN(const UniqueId id, make_local_unique_id());
  Result<LinkModel> model = LinkModel{};
  run_threads(2, [&](int rank) {
    const auto runtime = Runtime::join(id, rank, 2, options);
    if (rank == 0) {
      if (runtime.ok())
        model = (*runtime)->state()->link_model({0, 1});
      else
        model = runtime.error();
    }
    return 0;
  });
  return model;
}

Alternative weigh(const Algorithm& algorithm, const TuneRequest& request, const LinkModel& link) {
  Alternative one;
  one.algorithm = &algorithm;
  if (const Status offer = check_offer(algorithm, request); !offer.ok()) {
    one.refused = offer.text();
    return one;
  }
  const AlgorithmCost cost = algorithm.cost(request.ranks, request.bytes);
  one.rounds_seconds = cost.rounds * link.latency_seconds;
  one.transfer_seconds = cost.sent_bytes / link.bytes_per_second;
  one.combine_seconds = cost.combined_bytes / link.combine_bytes_per_second;
  return one;
}

Result<Answer> answer(Collective collective, std::size_t bytes, const ExplainOptions& options, const Config& config,
                      const LinkModel& link) {
  const TuneRequest request{.collective = collective,
                            .ranks = options.ranks,
                            .order = options.order == "canonical" ? Order::canonical : Order::fast,
                            .uneven = false,
                            .reduces = is_reduction(collective),
                            .bytes = static_cast<double>(bytes)};
  Answer found{.collective = collective, .bytes = bytes, .chosen = nullptr, .why = {}, .alternatives = {}};
  for (const Prediction& one : predict(request, link))
    found.alternatives.push_back(weigh(*one.algorithm, request, link));
  for (const Algorithm& one : all_algorithms())
    if (one.collective == collective && !check_offer(one, request).ok())
      found.alternatives.push_back(weigh(one, request, link));
  SLUICE_TRY_ASSIGN(const std::string forced, forced_algorithm(config.text(Setting::algorithm), collective));
  found.chosen = forced.empty() ? nullptr : find_algorithm(collective, forced);
  if (found.chosen != nullptr) {
    SLUICE_TRY(check_offer(*found.chosen, request));
    found.why = "forced by the setting algorithm (" + std::string(name(config.origin(Setting::algorithm))) + ")";
  } else {
    found.chosen = choose(request, link);
    found.why = forced.empty() ? "the least predicted time"
                               : "the least predicted time; the setting algorithm names '" + forced +
                                     "', which this collective does not have";
  }
  return found;
}

Json answer_json(const Answer& answer, const ExplainOptions& options) {
  Json json = {{"collective", std::string(name(answer.collective))},
               {"bytes", answer.bytes},
               {"ranks", options.ranks},
               {"chosen", answer.chosen == nullptr ? Json(nullptr) : Json(std::string(answer.chosen->name))},
               {"why", answer.why},
               {"alternatives", Json::array()}};
  for (const Alternative& one : answer.alternatives) {
    Json entry = {{"algorithm", std::string(one.algorithm->name)}};
    if (one.refused.empty()) {
      entry["seconds"] = one.seconds();
      entry["rounds_seconds"] = one.rounds_seconds;
      entry["transfer_seconds"] = one.transfer_seconds;
      entry["combine_seconds"] = one.combine_seconds;
    } else {
      entry["refused"] = one.refused;
    }
    json["alternatives"].push_back(std::move(entry));
  }
  return json;
}

std::string answer_text(const Answer& answer, bool in_detail) {
  std::string out = fmt::format("{:<15} {:>6}  {:<20} {}\n", name(answer.collective), format_bytes(answer.bytes),
                                answer.chosen == nullptr ? "none" : answer.chosen->name, answer.why);
  if (!in_detail) return out;
  for (const Alternative& one : answer.alternatives) {
    if (one.refused.empty())
      out += fmt::format("    {:<20} {:>12.2f} us = {:>10.2f} rounds + {:>10.2f} transfer + {:>10.2f} combine\n",
                         one.algorithm->name, one.seconds() * 1e6, one.rounds_seconds * 1e6, one.transfer_seconds * 1e6,
                         one.combine_seconds * 1e6);
    else
      out += fmt::format("    {:<20} not usable: {}\n", one.algorithm->name, one.refused);
  }
  return out;
}

Json settings_json(const Config& config) {
  Json json = Json::array();
  for (const SettingRow& one : setting_rows())
    json.push_back({{"name", std::string(one.name)},
                    {"variable", std::string(one.variable)},
                    {"value", config.text(one.setting)},
                    {"origin", std::string(name(config.origin(one.setting)))},
                    {"default", std::string(one.fallback)},
                    {"effect", std::string(one.effect)}});
  return json;
}

std::string settings_text(const Config& config) {
  std::string out = fmt::format("{:<17} {:<10} {:<12} {:<25} {}\n", "setting", "value", "origin", "variable", "effect");
  for (const SettingRow& one : setting_rows())
    out += fmt::format("{:<17} {:<10} {:<12} {:<25} {}\n", one.name,
                       config.text(one.setting).empty() ? "-" : config.text(one.setting),
                       name(config.origin(one.setting)), one.variable, one.effect);
  return out;
}

struct Question {
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;
};

Result<Question> read_question(const ExplainOptions& options) {
  Question question{{all_collectives().begin(), all_collectives().end()},
                    {64, std::size_t{4} << 10, std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{64} << 20}};
  if (!options.collective.empty()) {
    const auto collective = parse_collective(options.collective);
    if (!collective) return Error{Code::invalid_argument, "'" + options.collective + "' is no collective"};
    question.collectives = {*collective};
  }
  if (!options.bytes.empty()) {
    SLUICE_TRY_ASSIGN(const std::size_t bytes, parse_bytes(options.bytes));
    question.sizes = {bytes};
  }
  return question;
}

Status explain(const ExplainOptions& options) {
  SLUICE_TRY_ASSIGN(const Question question, read_question(options));
  SLUICE_TRY_ASSIGN(const Config config, Config::load());
  SLUICE_TRY_ASSIGN(const LinkModel link, ask_link_model(config));
  const bool in_detail = !options.collective.empty() || !options.bytes.empty();
  Json json = {{"link",
                {{"latency_seconds", link.latency_seconds},
                 {"bytes_per_second", link.bytes_per_second},
                 {"combine_bytes_per_second", link.combine_bytes_per_second}}},
               {"choices", Json::array()},
               {"settings", settings_json(config)}};
  std::string text = fmt::format(
      "{} ranks of this host, order {}; link: {:.2f} us latency, {:.2f} GB/s, combining {:.2f} GB/s\n", options.ranks,
      options.order, link.latency_seconds * 1e6, link.bytes_per_second / 1e9, link.combine_bytes_per_second / 1e9);
  for (const Collective collective : question.collectives)
    for (const std::size_t bytes : question.sizes) {
      SLUICE_TRY_ASSIGN(const Answer found, answer(collective, bytes, options, config, link));
      json["choices"].push_back(answer_json(found, options));
      text += answer_text(found, in_detail);
    }
  std::fputs(options.json ? (json.dump(1) + "\n").c_str() : (text + "\n" + settings_text(config)).c_str(), stdout);
  return {};
}

}  // namespace

int explain_command(const ExplainOptions& options) {
  const Status status = explain(options);
  if (status.ok()) return 0;
  print_error("explain", status.error());
  return status.code() == Code::invalid_argument || status.code() == Code::unsupported ? kUsage : kFailed;
}

}  // namespace sluice::tools
