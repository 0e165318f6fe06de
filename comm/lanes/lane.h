// A lane: under which name, with which urgency and within which bounds a communicator's traffic runs. Flows of different
// priorities never share a slot or a connection.
//
//   Order      control, urgent, normal, bulk: between two slices the engine, and between two messages a transport, serves the more
//              urgent lane first. Lanes of one priority share by weight, in bytes (stride scheduling: Waldspurger, Weihl, MIT
//              LCS TM-528, 1995).
//   Floor      a lane gets `bytes_per_second_min` before more urgent lanes get more: nothing starves.
//   Ceiling    a lane sends no more than `bytes_per_second_max` (a token bucket), on all links of this rank together.
//   Copies     a lane copies and combines no more than `copied_per_second_max` bytes here: what it takes from this host's memory.
//   Cores      a lane that names some is served there alone, by the engine's thread; who waits for its operations sleeps. The thread
//              runs on the cores of all lanes that name some. A loop world and a job of one rank have
//              no such thread, and pin nothing.
//   In flight  what a lane has handed to a network and the peer has not acknowledged is bounded while more urgent lanes are in use,
//              for what left can't be overtaken.
//   Set        in code, field by field; what code leaves open by SLUICE_LANES (or `lanes` in the file), then by the defaults.
//   Agreement  members of a communicator must name lanes of one name, priority and weight. The bounds are each rank's own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/result.h"
#include "comm/lanes/cores.h"

namespace sluice {

enum class Priority : std::uint8_t { control, urgent, normal, bulk };  // smaller is served first
std::string_view name(Priority priority);

// Empty fields are open.
struct Lane {
  std::string name = "default";  // letters, digits, '_', '-', '.'; at most kLaneNameMax
  std::optional<Priority> priority{};
  std::optional<std::uint32_t> weight{};  // 1..kLaneWeightMax
  std::optional<std::uint64_t> bytes_per_second_min{};
  std::optional<std::uint64_t> bytes_per_second_max{};   // 0: none
  std::optional<std::uint64_t> in_flight_bytes{};        // per link; 0: what the link carries in SLUICE_LANE_DELAY
  std::optional<std::uint64_t> copied_per_second_max{};  // bytes copied or combined here; 0: no limit
  std::optional<Cores> cores{};                          // empty: any
  bool operator==(const Lane&) const = default;
};
inline constexpr std::size_t kLaneNameMax = 32;
inline constexpr std::uint32_t kLaneWeightMax = 1024;

// "NAME[:PRIORITY[:WEIGHT]][:min=BYTES][:max=BYTES][:flight=BYTES][:copy=BYTES][:cores=CORES]", as in "tp:urgent" or
// "dp:bulk:4:max=1G:cores=2-3+6"; BYTES take K, M and G.
// Errors: invalid_argument with the word and what is allowed.
Result<Lane> parse_lane(std::string_view text);
// Several, with commas; every name once.
Result<std::vector<Lane>> parse_lanes(std::string_view text);
// Those of Setting::lanes; the error names the setting and where it came from.
Result<std::vector<Lane>> configured_lanes(const Config& config);
std::string to_text(const Lane& lane);

// Errors: invalid_argument with the lane, the field, its value and what is allowed.
Status check(const Lane& lane);

// Every field filled: from `asked`, else from the lane of that name in `configured`, else by default.
Lane complete(const Lane& asked, std::span<const Lane> configured);

// Errors: invalid_argument where it names cores that are not among these. None: not known, nothing is refused.
Status check_cores(const Lane& complete_lane, const Cores& allowed);

}  // namespace sluice
