// Owns a ring that one process alone uses. Slots are not touched before they are used, so a large ring costs little
// until then.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "base/result.h"
#include "transport/slot_ring.h"

namespace sluice {

class RingMemory {
 public:
  RingMemory() = default;

  // `shape` passed check_shape. Errors: out_of_resource.
  static Result<RingMemory> make(RingShape shape) {
    const std::size_t bytes = ring_bytes(shape);
    RingMemory made;
    made.memory_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kCacheLine}, std::nothrow)));
    if (made.memory_ == nullptr)
      return Error{Code::out_of_resource,
                   "no memory for a ring of " + std::to_string(bytes) + " bytes; use fewer or smaller slots"};
    std::memset(made.memory_.get(), 0, bytes - std::size_t{shape.slots} * shape.slot_bytes);
    made.ring_ = Ring(made.memory_.get(), shape);
    return made;
  }

  const Ring& ring() const { return ring_; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kCacheLine}); }
  };
  std::unique_ptr<std::byte, Delete> memory_;
  Ring ring_;
};

}  // namespace sluice
