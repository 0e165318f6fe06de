#include "comm/lanes/lane.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/config.h"

namespace sluice {
namespace {

constexpr std::array<Priority, 4> kPriorities{Priority::control, Priority::urgent, Priority::normal, Priority::bulk};
constexpr std::uint64_t kRateMax = std::uint64_t{1} << 44;
constexpr std::uint64_t kInFlightMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kInFlightMin = 4096;  // a kernel's own least

Error bad(std::string_view lane, std::string_view field, std::string_view value, std::string_view allowed) {
  return {Code::invalid_argument, "lane '" + std::string(lane) + "': " + std::string(field) + " is '" +
                                      std::string(value) + "', but must be " + std::string(allowed)};
}

// Cuts the first part off.
std::string_view cut(std::string_view& text, char at) {
  const std::size_t end = std::min(text.find(at), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

Status take_priority(Lane& lane, std::string_view word) {
  const auto found =
      std::find_if(kPriorities.begin(), kPriorities.end(), [&](Priority one) { return name(one) == word; });
  if (found == kPriorities.end()) return bad(lane.name, "priority", word, "one of control, urgent, normal, bulk");
  lane.priority = *found;
  return {};
}

Status take_weight(Lane& lane, std::string_view word) {
  std::uint32_t weight = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), weight);
  if (error != std::errc{} || end != word.data() + word.size())
    return bad(lane.name, "weight", word, "a number from 1 to " + std::to_string(kLaneWeightMax));
  lane.weight = weight;
  return {};
}

// "min=10M"
Status take_bound(Lane& lane, std::string_view word) {
  std::string_view value = word;
  const std::string_view key = cut(value, '=');
  if (key == "cores") {
    lane.cores = parse_cores(value);
    return lane.cores ? Status() : bad(lane.name, key, value, "'any', or numbers and ranges as in 2-3+6");
  }
  std::optional<std::uint64_t>* const field = key == "min"      ? &lane.bytes_per_second_min
                                              : key == "max"    ? &lane.bytes_per_second_max
                                              : key == "flight" ? &lane.in_flight_bytes
                                              : key == "copy"   ? &lane.copied_per_second_max
                                                                : nullptr;
  if (field == nullptr)
    return bad(lane.name, "the part", word, "min=, max=, flight= or copy= with BYTES, or cores=CORES");
  const auto bytes = parse_bytes(value);
  if (!bytes.ok()) return bad(lane.name, key, value, "bytes, as in 64K or 1G");
  *field = *bytes;
  return {};
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLaneNameMax && std::all_of(text.begin(), text.end(), [](unsigned char one) {
    return std::isalnum(one) != 0 || one == '_' || one == '-' || one == '.';
  });
}

}  // namespace

std::string_view name(Priority priority) {
  switch (priority) {
    case Priority::control: return "control";
    case Priority::urgent: return "urgent";
    case Priority::normal: return "normal";
    case Priority::bulk: return "bulk";
  }
  return "?";
}

Result<Lane> parse_lane(std::string_view text) {
  Lane lane;
  lane.name = cut(text, ':');
  for (int place = 0; !text.empty(); ++place) {
    const std::string_view part = cut(text, ':');
    const bool bound = part.find('=') != std::string_view::npos;
    if (bound) place = 2;  // after a bound come only bounds
    SLUICE_TRY(bound || place > 1 ? take_bound(lane, part)
               : place == 0       ? take_priority(lane, part)
                                  : take_weight(lane, part));
  }
  SLUICE_TRY(check(lane));
  return lane;
}

Result<std::vector<Lane>> parse_lanes(std::string_view text) {
  std::vector<Lane> lanes;
  while (!text.empty()) {
    SLUICE_TRY_ASSIGN(Lane lane, parse_lane(cut(text, ',')));
    for (const Lane& other : lanes)
      if (other.name == lane.name) return Error{Code::invalid_argument, "lane '" + lane.name + "' is described twice"};
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

Result<std::vector<Lane>> configured_lanes(const Config& config) {
  auto lanes = parse_lanes(config.text(Setting::lanes));
  if (lanes.ok()) return lanes;
  return Error{lanes.error().code, "setting lanes (SLUICE_LANES, from " +
                                       std::string(name(config.origin(Setting::lanes))) + "): " + lanes.error().text};
}

std::string to_text(const Lane& lane) {
  std::string text = lane.name;
  if (lane.priority || lane.weight) text += ":" + std::string(name(lane.priority.value_or(Priority::normal)));
  if (lane.weight) text += ":" + std::to_string(*lane.weight);
  if (lane.bytes_per_second_min) text += ":min=" + format_bytes(*lane.bytes_per_second_min);
  if (lane.bytes_per_second_max) text += ":max=" + format_bytes(*lane.bytes_per_second_max);
  if (lane.in_flight_bytes) text += ":flight=" + format_bytes(*lane.in_flight_bytes);
  if (lane.copied_per_second_max) text += ":copy=" + format_bytes(*lane.copied_per_second_max);
  if (lane.cores) text += ":cores=" + to_text(*lane.cores);
  return text;
}

Status check(const Lane& lane) {
  if (!is_name(lane.name))
    return bad(lane.name, "its name", lane.name,
               "1 to " + std::to_string(kLaneNameMax) + " letters, digits, '_', '-' or '.'");
  if (lane.weight && (*lane.weight < 1 || *lane.weight > kLaneWeightMax))
    return bad(lane.name, "weight", std::to_string(*lane.weight), "from 1 to " + std::to_string(kLaneWeightMax));
  const std::uint64_t least = lane.bytes_per_second_min.value_or(0);
  const std::uint64_t most = lane.bytes_per_second_max.value_or(0);
  if (least > kRateMax) return bad(lane.name, "min", std::to_string(least), "at most " + format_bytes(kRateMax));
  if (most > kRateMax) return bad(lane.name, "max", std::to_string(most), "at most " + format_bytes(kRateMax));
  if (most != 0 && least > most)
    return bad(lane.name, "min", format_bytes(least), "at most its max, " + format_bytes(most));
  if (const std::uint64_t copied = lane.copied_per_second_max.value_or(0); copied > kRateMax)
    return bad(lane.name, "copy", std::to_string(copied), "at most " + format_bytes(kRateMax));
  const std::uint64_t flight = lane.in_flight_bytes.value_or(0);
  if (flight != 0 && (flight < kInFlightMin || flight > kInFlightMax))
    return bad(lane.name, "flight", format_bytes(flight),
               "0 or from " + format_bytes(kInFlightMin) + " to " + format_bytes(kInFlightMax));
  return {};
}

Lane complete(const Lane& asked, std::span<const Lane> configured) {
  static const Lane kNone;
  const auto found =
      std::find_if(configured.begin(), configured.end(), [&](const Lane& one) { return one.name == asked.name; });
  const Lane& open = found == configured.end() ? kNone : *found;
  const auto pick = [](const auto& first, const auto& second, auto fallback) {
    return first ? *first : second.value_or(fallback);
  };
  Lane lane{.name = asked.name};
  lane.priority = pick(asked.priority, open.priority, Priority::normal);
  lane.weight = pick(asked.weight, open.weight, 1U);
  lane.bytes_per_second_min = pick(asked.bytes_per_second_min, open.bytes_per_second_min, std::uint64_t{0});
  lane.bytes_per_second_max = pick(asked.bytes_per_second_max, open.bytes_per_second_max, std::uint64_t{0});
  lane.in_flight_bytes = pick(asked.in_flight_bytes, open.in_flight_bytes, std::uint64_t{0});
  lane.copied_per_second_max = pick(asked.copied_per_second_max, open.copied_per_second_max, std::uint64_t{0});
  lane.cores = pick(asked.cores, open.cores, Cores{});
  return lane;
}

Status check_cores(const Lane& lane, const Cores& allowed) {
  if (allowed.empty()) return {};
  for (const int core : *lane.cores)
    if (!std::binary_search(allowed.begin(), allowed.end(), core))
      return bad(lane.name, "cores", std::to_string(core),
                 "one on which this process could run when it joined: " + to_text(allowed));
  return {};
}

}  // namespace sluice
