// What was measured on one machine, as a value and as text: per kind of link its parameters, and for each collective, number of
// ranks and algorithm the time at several sizes.
//
//   Text     sluice tuning 1
//            machine 9f0c1a2b3c4d5e6f "2 cores, 2 threads of EPYC"
//            link processes latency_seconds 1.2e-07 bytes_per_second 5.2e+09 combine_bytes_per_second 9e+09
//            times all_reduce 2 one_shot 8 1.6e-07 64 1.7e-07
//            end
//            `times` lines belong to the link above them: collective, ranks, algorithm, then bytes and seconds in turn, bytes as
//            Algorithm::cost's argument, rising. parse_machine_file(print(file)) == file.
//   Trust    none: unknown words, numbers out of range, anything twice, a missing end are errors that name line and field.
//   Limits   kMachineFileBytesMax, kTimeCurvesMax, kTimePointsMax.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "comm/algorithms/algorithms.h"

namespace sluice {

// Whom a link joins: ranks that are threads of one process, processes of one host over shared memory, or TCP.
enum class LinkKind : std::uint8_t { threads, processes, tcp };
inline constexpr int kLinkKinds = 3;
std::string_view name(LinkKind kind);
std::optional<LinkKind> parse_link_kind(std::string_view word);

struct TimePoint {
  std::uint64_t bytes = 0;
  double seconds = 0;
  bool operator==(const TimePoint&) const = default;
};

struct TimeCurve {
  const Algorithm* algorithm = nullptr;  // of the list, so the collective goes with it
  int ranks = 0;
  std::vector<TimePoint> points;  // at least one, bytes rising
  bool operator==(const TimeCurve&) const = default;
};

struct LinkMeasures {
  double latency_seconds = 0;
  double bytes_per_second = 0;
  double combine_bytes_per_second = 0;
  std::vector<TimeCurve> curves;  // those of one collective together, in the order of all_collectives()
  bool operator==(const LinkMeasures&) const = default;

  std::span<const TimeCurve> of(Collective collective) const;
};

struct MachineFile {
  std::uint64_t machine = 0;  // fingerprint of the machine
  std::string description;    // of the machine, for people
  std::array<std::optional<LinkMeasures>, kLinkKinds> links;
  bool operator==(const MachineFile&) const = default;

  std::optional<LinkMeasures>& link(LinkKind kind) { return links.at(static_cast<std::size_t>(kind)); }
  const std::optional<LinkMeasures>& link(LinkKind kind) const { return links.at(static_cast<std::size_t>(kind)); }
};

inline constexpr std::size_t kMachineFileBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kTimeCurvesMax = 4096;  // of one link
inline constexpr std::size_t kTimePointsMax = 64;    // of one curve

std::string print(const MachineFile& file);
// Errors: invalid_argument with line, field, value and what is allowed.
Result<MachineFile> parse_machine_file(std::string_view text);

}  // namespace sluice
