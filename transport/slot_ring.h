// The slot ring: what every flow is, on every transport. A sender fills slots in order and commits them; a
// receiver reads them in place and releases them. The ring's memory is all that an executor touches, so
// there is no call, virtual or other, into a transport per slot.
//
//   shm        one ring in memory that both ranks map; progress() has nothing to move. A rank that sleeps is woken
//              through its Bell by whoever commits to it or releases what it sent.
//   tcp, loop  a ring at each end; progress() moves committed slots to the peer's ring and released
//              counts back.
//
//   Room     a sender commits only when fewer than `slots` are unreleased: the ring is its credit.
//   Threads  one sender and one receiver at a time, each under its endpoint's owner token.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/config.h"
#include "base/result.h"
#include "transport/bell.h"

namespace sluice {

// Lies in the ring in this form, and crosses the wire so (little endian).
struct SlotHeader {
  std::uint32_t digest = 0;  // of the operation (its fingerprint's hash)
  std::uint32_t bytes = 0;   // payload bytes in the slot, or bytes at the described place
  // kNoWindow: the payload is in the slot; kNoPayload: there is none; else where in the sender's arena it lies
  std::uint64_t window_offset = kNoWindow;

  static constexpr std::uint64_t kNoWindow = ~std::uint64_t{0};
  static constexpr std::uint64_t kNoPayload = kNoWindow - 1;
  bool described() const { return window_offset != kNoWindow; }  // nothing is in the slot
  bool names_memory() const { return window_offset < kNoPayload; }
};
static_assert(sizeof(SlotHeader) == 16);

struct RingShape {
  std::uint32_t slots = 8;             // >= 1
  std::uint32_t slot_bytes = 1 << 16;  // a multiple of kCacheLine
  bool operator==(const RingShape&) const = default;
};

// Start of a ring's memory; one SlotLine per slot follows, then the slots, each from a cache line border.
struct RingControl {
  alignas(
      kCacheLine) std::atomic<std::uint64_t> head;  // slots released. Receiver release -> sender acquire: slot is free
};

// All that a receiver must fetch of a short message, in one cache line.
inline constexpr std::size_t kInlineBytes = 40;
struct SlotLine {
  alignas(kCacheLine) std::atomic<std::uint64_t> number;  // of the message in the slot, from 1. Sender release ->
                                                          // receiver acquire: it is there, and all before it
  SlotHeader header;
  std::byte payload[kInlineBytes];  // of a message that fits
};
static_assert(sizeof(SlotLine) == kCacheLine);

inline constexpr std::uint32_t kSlotsMax = 1 << 12;
inline constexpr std::uint32_t kSlotBytesMax = 1 << 28;

RingShape ring_shape(const Config& config);  // Setting::slots of Setting::slot_bytes, in whole cache lines
// invalid_argument, naming the number and what is allowed.
Status check_shape(RingShape shape);
std::size_t ring_bytes(RingShape shape);  // of a shape that passed check_shape

// A view of a ring; the memory belongs to the transport. Copying copies the view.
class Ring {
 public:
  Ring() = default;
  // `memory`: ring_bytes(shape) bytes at a cache line border, zeroed before first use.
  Ring(std::byte* memory, RingShape shape);

  RingShape shape() const { return shape_; }
  RingControl& control() const { return *control_; }
  // Messages are counted from 0; `place` is where the payload of one of so many bytes lies.
  // A copy, read once: in shared memory a hostile sender can change it at any time.
  SlotHeader header(std::uint64_t message) const {
    using Word = std::uint64_t __attribute__((may_alias));
    const auto* from = reinterpret_cast<const Word*>(&line(message).header);
    const std::uint64_t words[2] = {__atomic_load_n(from, __ATOMIC_RELAXED),
                                    __atomic_load_n(from + 1, __ATOMIC_RELAXED)};
    SlotHeader copy;
    std::memcpy(&copy, words, sizeof copy);
    return copy;
  }
  std::byte* place(std::uint64_t message, std::size_t bytes) const {
    return bytes <= kInlineBytes ? line(message).payload : data_ + (message % shape_.slots) * shape_.slot_bytes;
  }
  bool published(std::uint64_t message) const {
    return line(message).number.load(std::memory_order_acquire) == message + 1;
  }
  void publish(std::uint64_t message, const SlotHeader& header) const {
    SlotLine& to = line(message);
    to.header = header;
    to.number.store(message + 1, std::memory_order_release);
  }
  explicit operator bool() const { return control_ != nullptr; }

 private:
  SlotLine& line(std::uint64_t message) const { return lines_[message % shape_.slots]; }

  RingControl* control_ = nullptr;
  SlotLine* lines_ = nullptr;
  std::byte* data_ = nullptr;
  RingShape shape_;
};

// The sending half. Owned by the transport, borrowed by the executor.
class OutFlow {
 public:
  // How many messages can be committed now, at least: 0 is exact, more may be out of date until released() is asked.
  std::uint32_t room() {
    const std::uint64_t used = committed_ - released_;
    if (used < ring_.shape().slots) return ring_.shape().slots - static_cast<std::uint32_t>(used);
    released_ = ring_.control().head.load(std::memory_order_acquire);
    return ring_.shape().slots - static_cast<std::uint32_t>(committed_ - released_);
  }
  // The place to write the next message to, which will have `bytes` bytes (at most slot_bytes). Only with room() > 0.
  std::byte* reserve(std::size_t bytes) { return ring_.place(committed_, bytes); }
  void commit(const SlotHeader& header) {
    ring_.publish(committed_, header);
    ++committed_;
    ring_bell(peer_bell_);
  }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t released() { return released_ = ring_.control().head.load(std::memory_order_acquire); }

  // The offset of [data, data + bytes) in memory that this flow's receiver can read at an address
  // (a window), or SlotHeader::kNoWindow: then the message must be copied into the slot.
  std::uint64_t window_offset(const void* data, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    const auto base = reinterpret_cast<std::uintptr_t>(window_base_);
    if (window_base_ == nullptr || at < base || at - base > window_bytes_ || bytes > window_bytes_ - (at - base))
      return SlotHeader::kNoWindow;
    return at - base;
  }

  // For the transport that owns it.
  void bind(Ring ring, Bell peer_bell, const std::byte* window_base, std::size_t window_bytes) {
    ring_ = ring;
    peer_bell_ = peer_bell;
    window_base_ = window_base;
    window_bytes_ = window_bytes;
  }
  const Ring& ring() const { return ring_; }

 private:
  Ring ring_;
  std::uint64_t committed_ = 0;
  std::uint64_t released_ = 0;
  Bell peer_bell_;
  const std::byte* window_base_ = nullptr;
  std::size_t window_bytes_ = 0;
};

// The receiving half. Until the peer's half is known (`bind`), it simply has no messages.
class InFlow {
 public:
  // True when the `ahead`-th unreleased message is there (0: the oldest).
  bool ready(std::uint64_t ahead = 0) const { return ring_ && ring_.published(released_ + ahead); }
  // Only when ready(ahead). A copy, which alone may be believed: see Ring::header.
  SlotHeader header(std::uint64_t ahead = 0) const { return ring_.header(released_ + ahead); }
  // The payload of the message with this header, in place: in the slot, or in the sender's window. nullptr: it can't lie there
  // (more than a slot holds, or outside the sender's arena), which only a broken or hostile peer says.
  const std::byte* payload(const SlotHeader& head, std::uint64_t ahead = 0) const {
    if (head.described()) return window(head);
    return head.bytes <= ring_.shape().slot_bytes ? ring_.place(released_ + ahead, head.bytes) : nullptr;
  }
  // The memory of the sender that a header names, to read what it describes or to write where it offers. nullptr: as above.
  std::byte* window(const SlotHeader& head) const {
    if (head.window_offset > window_bytes_ || head.bytes > window_bytes_ - head.window_offset) return nullptr;
    return window_base_ + head.window_offset;
  }
  void release(std::uint64_t messages = 1) {
    released_ += messages;
    ring_.control().head.store(released_, std::memory_order_release);
    ring_bell(peer_bell_);
  }
  std::uint64_t released() const { return released_; }

  // For the transport that owns it.
  void bind(Ring ring, Bell peer_bell, std::byte* window_base, std::size_t window_bytes) {
    ring_ = ring;
    peer_bell_ = peer_bell;
    window_base_ = window_base;
    window_bytes_ = window_bytes;
  }
  const Ring& ring() const { return ring_; }

 private:
  Ring ring_;
  std::uint64_t released_ = 0;
  Bell peer_bell_;
  std::byte* window_base_ = nullptr;
  std::size_t window_bytes_ = 0;
};

}  // namespace sluice
