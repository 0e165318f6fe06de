#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/replace_file.h"
#include "tools/sluice/commands.h"
#include "tools/trace/clocks.h"
#include "tools/trace/diagnose.h"
#include "tools/trace/pictures.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const std::vector<RankTrace>& traces) {
  Json ranks = Json::array();
  for (const RankTrace& one : traces) {
    Json unfinished = Json::array();
    for (const TracedCommunicator& communicator : one.communicators)
      for (const TracedOperation& operation : communicator.unfinished)
        unfinished.push_back({{"communicator", communicator.name},
                              {"lane", communicator.lane},
                              {"kind", operation.kind},
                              {"sequence", operation.sequence},
                              {"slice", operation.slice},
                              {"waits_for", communicator.world_rank(operation.waits_for)},
                              {"waits_on", operation.waits_on},
                              {"stuck_seconds", operation.stuck_seconds}});
    ranks.push_back({{"rank", one.rank},
                     {"host", one.host},
                     {"why", one.why},
                     {"events", one.events.size()},
                     {"unfinished", unfinished}});
  }
  return {{"ranks_of_job", traces.front().ranks}, {"ranks", ranks}};
}

std::string summary_text(const std::vector<RankTrace>& traces) {
  std::string out = fmt::format("{} of {} ranks wrote a trace\n", traces.size(), traces.front().ranks);
  for (const RankTrace& one : traces) {
    out += fmt::format("rank {} on {}: {} events; {}\n", one.rank, one.host, one.events.size(), one.why);
    for (const TracedCommunicator& communicator : one.communicators)
      for (const TracedOperation& operation : communicator.unfinished)
        out += fmt::format(
            "  unfinished: {} #{} on '{}' (lane {}), slice {}, waits for rank {} ({}), {:.1f} s without progress\n",
            operation.kind, operation.sequence, communicator.name, communicator.lane, operation.slice,
            communicator.world_rank(operation.waits_for), operation.waits_on, operation.stuck_seconds);
  }
  return out;
}

Json clocks_json(const std::vector<ClockOfHost>& clocks) {
  Json json = Json::array();
  for (const ClockOfHost& one : clocks)
    json.push_back({{"host", one.host},
                    {"ahead_ns", one.ahead_ns},
                    {"doubt_ns", one.doubt_ns ? Json(*one.doubt_ns) : Json(nullptr)}});
  return json;
}

std::string clocks_text(const std::vector<ClockOfHost>& clocks) {
  std::string out;
  for (const ClockOfHost& one : clocks)
    if (!one.doubt_ns)
      out += fmt::format("clock of {}: no operation says how it differs from {}'s\n", one.host, clocks.front().host);
    else if (one.ahead_ns != 0)
      out += fmt::format("clock of {}: {:+.3f} ms from {}'s, at most {:.3f} ms off; taken off\n", one.host,
                         static_cast<double>(one.ahead_ns) / 1e6, clocks.front().host,
                         static_cast<double>(*one.doubt_ns) / 1e6);
  return out;
}

Status trace(const TraceOptions& options, bool& guilty) {
  SLUICE_TRY_ASSIGN(std::vector<RankTrace> traces, read_traces(options.paths));
  const std::vector<ClockOfHost> clocks = align_clocks(traces);
  Json json = summary_json(traces);
  json["clocks"] = clocks_json(clocks);
  std::string text = options.diagnose ? std::string() : summary_text(traces) + clocks_text(clocks);
  if (options.diagnose) {
    const Diagnosis found = diagnose(traces);
    guilty = found.kind != Diagnosis::Kind::nothing;
    json["diagnosis"] = {{"kind", std::string(name(found.kind))},
                         {"culprit", found.culprit ? Json(*found.culprit) : Json(nullptr)},
                         {"text", found.text},
                         {"evidence", found.evidence}};
    text = found.text + "\n";
    for (const std::string& one : found.evidence) text += "  " + one + "\n";
  }
  if (!options.chrome_file.empty())
    SLUICE_TRY(replace_file(options.chrome_file, to_chrome(traces), 0600, "the picture"));
  if (!options.svg_file.empty()) SLUICE_TRY(replace_file(options.svg_file, to_svg(traces), 0600, "the picture"));
  for (char& one : text)  // it is a stranger's, and this may be a terminal
    if (static_cast<unsigned char>(one) < 0x20 && one != '\n') one = ' ';
  std::fputs(options.json ? (json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n").c_str() : text.c_str(),
             stdout);
  return {};
}

}  // namespace

int trace_command(const TraceOptions& options) {
  bool guilty = false;
  const Status status = trace(options, guilty);
  if (status.ok()) return guilty ? kFailed : 0;
  print_error("trace", status.error());
  return kUsage;
}

}  // namespace sluice::tools
