// What a blocked operation waits for.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

enum class WaitReason : std::uint8_t {
  nothing,
  message,  // that the peer sends
  room,     // a slot that the peer gives back
  reading,  // until the peer has read what lies in a window here
  ceiling,  // of its lane
};

constexpr std::string_view name(WaitReason reason) {
  switch (reason) {
    case WaitReason::nothing: return "nothing";
    case WaitReason::message: return "message";
    case WaitReason::room: return "room";
    case WaitReason::reading: return "reading";
    case WaitReason::ceiling: return "ceiling";
  }
  return "?";
}

}  // namespace sluice
