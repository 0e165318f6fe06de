// A lane: the name and urgency under which a communicator's traffic runs. Flows of different lanes never share slots, and
// between two slices the engine and the transports serve the more urgent lane first.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

enum class Priority : std::uint8_t { control, urgent, normal, bulk };  // smaller is served first
std::string_view name(Priority priority);

struct Lane {
  std::string name = "default";
  Priority priority = Priority::normal;
  bool operator==(const Lane&) const = default;
};

}  // namespace sluice
