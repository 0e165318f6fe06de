#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "comm/lanes/lane.h"
#include "tools/sluice/answers.h"
#include "tools/sluice/check.h"
#include "tools/sluice/commands.h"
#include "transport/tcp/socket_options.h"
#include "transport/transport.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

Json answer_json(const Answer& answer, const ExplainOptions& options) {
  Json json = {{"collective", std::string(name(answer.collective))},
               {"bytes", answer.bytes},
               {"ranks", options.ranks},
               {"chosen", answer.chosen == nullptr ? Json(nullptr) : Json(std::string(answer.chosen->name))},
               {"why", answer.why},
               {"alternatives", Json::array()}};
  for (const Alternative& one : answer.alternatives) {
    Json entry = {{"algorithm", std::string(one.prediction.algorithm->name)}};
    if (one.refused.empty()) {
      entry["seconds"] = one.prediction.seconds;
      entry["source"] = std::string(name(one.prediction.source));
      if (one.prediction.measured_ranks != 0) entry["measured_ranks"] = one.prediction.measured_ranks;
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

std::string source_text(const Prediction& prediction) {
  if (prediction.source == TimeSource::measured) return "measured";
  return fmt::format("scaled from measurements of {} ranks", prediction.measured_ranks);
}

std::string alternative_text(const Alternative& one) {
  const Prediction& weighed = one.prediction;
  if (!one.refused.empty()) return fmt::format("    {:<20} not usable: {}\n", weighed.algorithm->name, one.refused);
  if (weighed.source != TimeSource::predicted)
    return fmt::format("    {:<20} {:>12.2f} us   {}\n", weighed.algorithm->name, weighed.seconds * 1e6,
                       source_text(weighed));
  return fmt::format("    {:<20} {:>12.2f} us = {:>10.2f} rounds + {:>10.2f} transfer + {:>10.2f} combine\n",
                     weighed.algorithm->name, weighed.seconds * 1e6, one.rounds_seconds * 1e6,
                     one.transfer_seconds * 1e6, one.combine_seconds * 1e6);
}

std::string answer_text(const Answer& answer, bool in_detail) {
  std::string out = fmt::format("{:<15} {:>6}  {:<20} {}\n", name(answer.collective), format_bytes(answer.bytes),
                                answer.chosen == nullptr ? "none" : answer.chosen->name, answer.why);
  if (!in_detail) return out;
  for (const Alternative& one : answer.alternatives) out += alternative_text(one);
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

Json grounds_json(const Grounds& grounds) {
  return {{"kind", std::string(name(grounds.kind))},
          {"latency_seconds", grounds.link.latency_seconds},
          {"bytes_per_second", grounds.link.bytes_per_second},
          {"combine_bytes_per_second", grounds.link.combine_bytes_per_second},
          {"source", grounds.link.measures == nullptr ? "predicted" : "measured"}};
}

std::string grounds_text(const Grounds& grounds, const ExplainOptions& options) {
  const Tuning& tuning = grounds.tuning;
  std::string measured = "none, " + tuning.why_none;
  if (tuning.file != nullptr) measured = tuning.path + " (" + tuning.file->description + ")";
  return fmt::format(
      "{} ranks of this host, order {}; link {}: {:.2f} us latency, {:.2f} GB/s, combining {:.2f} GB/s ({})\n"
      "measured times: {}\n",
      options.ranks, options.order, name(grounds.kind), grounds.link.latency_seconds * 1e6,
      grounds.link.bytes_per_second / 1e9, grounds.link.combine_bytes_per_second / 1e9,
      grounds.link.measures == nullptr ? "predicted" : "measured", measured);
}

// The most rings that a communicator takes of each rank: of its flows to the others, of collectives and of sends. Shared memory has one
// ring for both ends.
std::size_t most_rings(const Grounds& grounds, const ExplainOptions& options) {
  const std::size_t sides = grounds.kind == LinkKind::tcp ? 2 : 1;
  return sides * 2 * (static_cast<std::size_t>(options.ranks) - 1);
}

Json memory_json(const Grounds& grounds, const ExplainOptions& options) {
  const std::size_t ring = ring_bytes(ring_shape(grounds.config));
  const std::size_t most = most_rings(grounds, options);
  return {{"ring_bytes", ring}, {"rings_most", most}, {"bytes_most", most * ring}};
}

std::string memory_text(const Grounds& grounds, const ExplainOptions& options) {
  const RingShape shape = ring_shape(grounds.config);
  const std::size_t most = most_rings(grounds, options);
  return fmt::format(
      "memory: a communicator takes at most {} rings of {} bytes ({}) of a rank, {} bytes; pages when they are first "
      "used\n",
      most, ring_bytes(shape), describe(shape), most * ring_bytes(shape));
}

// What applies to lanes of these names; code may say otherwise.
Json lanes_json(const std::vector<Lane>& lanes) {
  Json json = Json::array();
  for (const Lane& one : lanes)
    json.push_back({{"name", one.name},
                    {"priority", std::string(name(*one.priority))},
                    {"weight", *one.weight},
                    {"bytes_per_second_min", *one.bytes_per_second_min},
                    {"bytes_per_second_max", *one.bytes_per_second_max},
                    {"in_flight_bytes", *one.in_flight_bytes},
                    {"copied_per_second_max", *one.copied_per_second_max},
                    {"cores", *one.cores},
                    {"dscp", dscp_of_lane(static_cast<std::uint8_t>(*one.priority))}});
  return json;
}

std::string lanes_text(const std::vector<Lane>& lanes, const Config& config) {
  const auto or_word = [](std::uint64_t bytes, const char* word) { return bytes == 0 ? word : format_bytes(bytes); };
  std::string out = fmt::format("{:<17} {:<9} {:>6} {:>10} {:>10} {:>10} {:>10} {:>5} {}\n", "lane", "priority",
                                "weight", "min/s", "max/s", "in flight", "copies/s", "DSCP", "cores");
  for (const Lane& one : lanes)
    out +=
        fmt::format("{:<17} {:<9} {:>6} {:>10} {:>10} {:>10} {:>10} {:>5} {}\n", one.name, name(*one.priority),
                    *one.weight, or_word(*one.bytes_per_second_min, "alive"), or_word(*one.bytes_per_second_max, "-"),
                    or_word(*one.in_flight_bytes, config.text(Setting::lane_delay).c_str()),
                    or_word(*one.copied_per_second_max, "-"), dscp_of_lane(static_cast<std::uint8_t>(*one.priority)),
                    to_text(*one.cores));
  return out;
}

Result<std::vector<Lane>> known_lanes(const Config& config) {
  SLUICE_TRY_ASSIGN(const std::vector<Lane> configured, configured_lanes(config));
  std::vector<Lane> lanes{complete(Lane{}, configured)};
  for (const Lane& one : configured)
    if (one.name != lanes.front().name) lanes.push_back(complete(one, configured));
  return lanes;
}

Status explain(const ExplainOptions& options) {
  SLUICE_TRY_ASSIGN(const Question question, read_question(options));
  SLUICE_TRY_ASSIGN(const Grounds grounds, find_grounds(options));
  SLUICE_TRY_ASSIGN(const std::vector<Lane> lanes, known_lanes(grounds.config));
  const bool in_detail = !options.collective.empty() || !options.bytes.empty();
  Json json = {{"link", grounds_json(grounds)},
               {"tuning", grounds.tuning.file == nullptr ? Json(nullptr) : Json(grounds.tuning.path)},
               {"memory", memory_json(grounds, options)},
               {"lanes", lanes_json(lanes)},
               {"choices", Json::array()},
               {"settings", settings_json(grounds.config)}};
  if (grounds.tuning.file == nullptr) json["why_no_tuning"] = grounds.tuning.why_none;
  std::string text = grounds_text(grounds, options) + memory_text(grounds, options);
  for (const Collective collective : question.collectives)
    for (const std::size_t bytes : question.sizes) {
      SLUICE_TRY_ASSIGN(const Answer found, answer(collective, bytes, options, grounds));
      json["choices"].push_back(answer_json(found, options));
      text += answer_text(found, in_detail);
    }
  text += "\n" + lanes_text(lanes, grounds.config) + "\n" + settings_text(grounds.config);
  std::fputs(options.json ? (json.dump(1) + "\n").c_str() : text.c_str(), stdout);
  return {};
}

}  // namespace

int explain_command(const ExplainOptions& options) {
  if (options.check) return check_command(options);
  if (options.fail_above != 0) {
    print_error("explain", {Code::invalid_argument, "--fail-above needs --check"});
    return kUsage;
  }
  const Status status = explain(options);
  if (status.ok()) return 0;
  print_error("explain", status.error());
  return status.code() == Code::invalid_argument || status.code() == Code::unsupported ? kUsage : kFailed;
}

}  // namespace sluice::tools
