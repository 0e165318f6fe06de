#include "transport/slot_ring.h"

#include <string>

namespace sluice {
namespace {

constexpr std::size_t lines_bytes(RingShape shape) { return std::size_t{shape.slots} * sizeof(SlotLine); }

}  // namespace

RingShape ring_shape(const Config& config) {
  return {static_cast<std::uint32_t>(config.number(Setting::slots)),
          static_cast<std::uint32_t>(config.bytes(Setting::slot_bytes) / kCacheLine * kCacheLine)};
}

Status check_shape(RingShape shape) {
  if (shape.slots < 1 || shape.slots > kSlotsMax)
    return {Code::invalid_argument,
            "a flow of " + std::to_string(shape.slots) + " slots: must be 1 to " + std::to_string(kSlotsMax)};
  if (shape.slot_bytes < kCacheLine || shape.slot_bytes > kSlotBytesMax || shape.slot_bytes % kCacheLine != 0)
    return {Code::invalid_argument, "a flow with slots of " + std::to_string(shape.slot_bytes) +
                                        " bytes: must be a multiple of 64, at most " + std::to_string(kSlotBytesMax)};
  return {};
}

std::size_t ring_bytes(RingShape shape) {
  return sizeof(RingControl) + lines_bytes(shape) + std::size_t{shape.slots} * shape.slot_bytes;
}

Ring::Ring(std::byte* memory, RingShape shape)
    : control_(reinterpret_cast<RingControl*>(memory)),
      lines_(reinterpret_cast<SlotLine*>(memory + sizeof(RingControl))),
      data_(memory + sizeof(RingControl) + lines_bytes(shape)),
      shape_(shape) {}

}  // namespace sluice
