#include "transport/slot_ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace sluice {
namespace {

constexpr std::size_t up_to_line(std::size_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }
constexpr std::size_t headers_bytes(RingShape shape) { return up_to_line(shape.slots * sizeof(SlotHeader)); }

}  // namespace

std::size_t ring_bytes(RingShape shape) {
  return sizeof(RingControl) + headers_bytes(shape) + std::size_t{shape.slots} * shape.slot_bytes;
}

Ring::Ring(std::byte* memory, RingShape shape)
    : control_(reinterpret_cast<RingControl*>(memory)),
      headers_(reinterpret_cast<SlotHeader*>(memory + sizeof(RingControl))),
      data_(memory + sizeof(RingControl) + headers_bytes(shape)),
      shape_(shape) {}

void ring_doorbell_slow(Doorbell& doorbell) {
  doorbell.rings.fetch_add(1, std::memory_order_release);
  syscall(SYS_futex, &doorbell.rings, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace sluice
