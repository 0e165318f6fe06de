// What the ranks of a host show each other, so that whoever shares cores or a network with something more urgent makes way. Hints: a
// rank that shows nonsense makes others slower.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace sluice {

inline constexpr std::uint8_t kLanes = 4;  // lanes are numbered below it; smaller is more urgent

// A rank's most urgent lane with an operation under way; nothing: none has.
struct ShownUrgency {
  std::optional<std::uint8_t> any{};
  std::optional<std::uint8_t> network{};  // of operations that leave the host
  bool operator==(const ShownUrgency&) const = default;
};

// What all others show.
struct UrgencyElsewhere {
  std::uint8_t any = 0;                        // lanes, a bit each
  std::uint8_t network = 0;                    // the same
  std::array<std::uint32_t, kLanes> begins{};  // how often somebody began to show each

  static constexpr std::uint8_t bit(std::size_t lane) { return static_cast<std::uint8_t>(1U << lane); }
  bool more_urgent(std::size_t lane) const { return (any & (bit(lane) - 1U)) != 0; }
  std::uint64_t more_urgent_begins(std::size_t lane) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < lane; ++i) sum += begins[i];
    return sum;
  }
};

// Other ranks of this host want the network.
struct NetworkClaim {
  std::optional<std::uint8_t> lane{};        // their most urgent lane there
  std::optional<std::uint8_t> held_below{};  // less urgent lanes than this get only what they are guaranteed
  bool operator==(const NetworkClaim&) const = default;
};

}  // namespace sluice
