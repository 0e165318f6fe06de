#include "tools/trace/pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWidth = 1200;
constexpr double kLeft = 180;
constexpr double kRow = 22;
constexpr double kTop = 30;
constexpr std::array<std::string_view, 6> kColors{"#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377"};

std::string lane_of(const RankTrace& trace, const TracedEvent& event) {
  const TracedCommunicator* const communicator = trace.communicator(event.communicator);
  return communicator == nullptr ? "?" : communicator->lane;
}

std::string title(const RankTrace& trace, const TracedEvent& event) {
  const TracedCommunicator* const communicator = trace.communicator(event.communicator);
  const std::string on = communicator == nullptr ? "?" : communicator->name;
  return event.sequence == 0 ? fmt::format("{} on {}", event.kind, on)
                             : fmt::format("{} #{} on {}", event.kind, event.sequence, on);
}

// With where it was, and for whom it waits.
std::string what_of(const RankTrace& trace, const TracedEvent& event) {
  std::string text = title(trace, event);
  if (event.slice >= 0) text += fmt::format(", slice {}", event.slice);
  const TracedCommunicator* const communicator = trace.communicator(event.communicator);
  if (event.peer >= 0 && communicator != nullptr)
    text += fmt::format(", waits for rank {} ({})", communicator->world_rank(event.peer), event.reason);
  return text;
}

bool ends(const TracedEvent& event) { return event.what == "done" || event.what == "failed"; }

std::int64_t first_time(const std::vector<RankTrace>& traces) {
  std::int64_t first = INT64_MAX;
  for (const RankTrace& trace : traces)
    for (const TracedEvent& event : trace.events)
      first = std::min({first, event.at_ns, ends(event) ? event.posted_ns : event.at_ns});
  return first == INT64_MAX ? 0 : first;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char one : text) switch (one) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(one) < 0x20 ? ' ' : one;
    }
  return out;
}

}  // namespace

std::string to_chrome(const std::vector<RankTrace>& traces) {
  const std::int64_t begin = first_time(traces);
  const auto us = [&](std::int64_t ns) { return static_cast<double>(ns - begin) / 1e3; };
  Json events = Json::array();
  for (const RankTrace& trace : traces) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", trace.rank},
                      {"args", {{"name", fmt::format("rank {} ({})", trace.rank, trace.host)}}}});
    std::map<std::string, int> lanes;
    for (const TracedEvent& event : trace.events) {
      const std::string lane = lane_of(trace, event);
      const auto [at, fresh] = lanes.emplace(lane, static_cast<int>(lanes.size()) + 1);
      if (fresh)
        events.push_back({{"ph", "M"},
                          {"name", "thread_name"},
                          {"pid", trace.rank},
                          {"tid", at->second},
                          {"args", {{"name", "lane " + lane}}}});
      Json entry = {{"name", title(trace, event)}, {"cat", event.what}, {"pid", trace.rank}, {"tid", at->second}};
      // Operations of a lane may overlap, which nested spans can't show: each is an asynchronous one of its own.
      if (ends(event)) {
        const std::string id =
            fmt::format("{}.{}.{}.{}", trace.rank, event.communicator, event.sequence, event.posted_ns);
        entry["id"] = id;
        entry["args"] = {{"bytes", event.bytes}, {"failed", event.what == "failed"}};
        entry["ph"] = "b";
        entry["ts"] = us(event.posted_ns);
        events.push_back(entry);
        entry["ph"] = "e";
        entry["ts"] = us(event.at_ns);
      } else {
        entry["ph"] = "i";
        entry["s"] = "t";
        entry["ts"] = us(event.at_ns);
        entry["args"] = {
            {"bytes", event.bytes}, {"slice", event.slice}, {"peer", event.peer}, {"reason", event.reason}};
      }
      events.push_back(entry);
    }
  }
  return Json{{"traceEvents", events}, {"displayTimeUnit", "ns"}}.dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

std::string to_svg(const std::vector<RankTrace>& traces) {
  const std::int64_t begin = first_time(traces);
  std::int64_t end = begin + 1;
  std::map<std::pair<Rank, std::string>, std::size_t> rows;
  std::map<std::string, std::size_t> lanes;
  for (const RankTrace& trace : traces)
    for (const TracedEvent& event : trace.events) {
      end = std::max(end, event.at_ns);
      rows.emplace(std::pair{trace.rank, lane_of(trace, event)}, 0);
      lanes.emplace(lane_of(trace, event), lanes.size());
    }
  std::size_t next = 0;
  for (auto& [key, row] : rows) row = next++;
  const auto x = [&](std::int64_t ns) {
    return kLeft + (kWidth - kLeft - 10) * static_cast<double>(ns - begin) / static_cast<double>(end - begin);
  };
  const double height = kTop + kRow * static_cast<double>(rows.size()) + 30;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" font-family=\"sans-serif\" "
      "font-size=\"11\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n<text x=\"{2}\" y=\"18\">{3:.3f} ms, {4} ranks</text>\n",
      kWidth, height, kLeft, static_cast<double>(end - begin) / 1e6, traces.size());
  for (const auto& [key, row] : rows)
    svg += fmt::format("<text x=\"6\" y=\"{:.1f}\">rank {} {}</text>\n",
                       kTop + kRow * (static_cast<double>(row) + 0.65), key.first, escaped(key.second));
  for (const RankTrace& trace : traces)
    for (const TracedEvent& event : trace.events) {
      const std::string lane = lane_of(trace, event);
      const double y = kTop + kRow * static_cast<double>(rows.at({trace.rank, lane}));
      const double to = x(event.at_ns);
      const double from = ends(event) ? x(event.posted_ns) : to;
      const bool wait = event.what == "wait";
      const std::string_view color =
          wait || event.what == "failed" ? "#cc0000" : kColors.at(lanes.at(lane) % kColors.size());
      svg += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\" fill-opacity=\"{}\"><title>{}, "
          "{} bytes</title></rect>\n",
          from, y + 2, std::max(to - from, 0.6), kRow - 4, color, ends(event) ? 0.35 : 0.9,
          escaped(what_of(trace, event)), event.bytes);
    }
  return svg + "</svg>\n";
}

}  // namespace sluice::tools
