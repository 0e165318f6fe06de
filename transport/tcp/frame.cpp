#include "transport/tcp/frame.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/assert.h"
#include "device/cpu/copy.h"

namespace sluice {
namespace {

constexpr std::uint32_t kMagic = 0x31434c53;  // "SLC1"; changes with the layout

template <typename T>
void put(FrameBytes& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

template <typename T>
T get(std::span<const std::byte, kFrameBytes> bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = static_cast<T>(value | static_cast<T>(static_cast<T>(bytes[at + i]) << (8 * i)));
  return value;
}

Error refusal(std::string text) { return {Code::refused, std::move(text)}; }

}  // namespace

// magic 4, kind 1, lane 1, channel 1, zero 1, communicator 8, number 8, and two numbers of 4 that depend on the kind
FrameBytes encode(const Frame& frame) {
  std::uint32_t first = 0;
  std::uint32_t second = 0;
  switch (frame.kind) {
    case FrameKind::greeting:
      first = frame.rank;
      second = frame.ranks;
      break;
    case FrameKind::open:
      first = frame.shape.slots;
      second = frame.shape.slot_bytes;
      break;
    case FrameKind::message:
      first = frame.digest;
      second = frame.bytes;
      break;
    case FrameKind::credit: break;
  }
  FrameBytes bytes{};
  put(bytes, 0, kMagic);
  put(bytes, 4, static_cast<std::uint8_t>(frame.kind));
  put(bytes, 5, frame.flow.lane);
  put(bytes, 6, frame.flow.channel);
  put(bytes, 8, frame.flow.communicator);
  put(bytes, 16, frame.number);
  put(bytes, 24, first);
  put(bytes, 28, second);
  return bytes;
}

Result<Frame> decode_frame(std::span<const std::byte, kFrameBytes> bytes) {
  if (get<std::uint32_t>(bytes, 0) != kMagic) return refusal("not a frame of this version of Sluice");
  const auto kind = get<std::uint8_t>(bytes, 4);
  if (kind > static_cast<std::uint8_t>(FrameKind::credit) || get<std::uint8_t>(bytes, 7) != 0)
    return refusal("a frame of unknown kind " + std::to_string(kind));
  Frame frame;
  frame.kind = static_cast<FrameKind>(kind);
  frame.flow = {get<std::uint64_t>(bytes, 8), get<std::uint8_t>(bytes, 5), get<std::uint8_t>(bytes, 6)};
  frame.number = get<std::uint64_t>(bytes, 16);
  const auto first = get<std::uint32_t>(bytes, 24);
  const auto second = get<std::uint32_t>(bytes, 28);
  switch (frame.kind) {
    case FrameKind::greeting:
      frame.rank = first;
      frame.ranks = second;
      break;
    case FrameKind::open:
      frame.shape = {first, second};
      if (const Status shape = check_shape(frame.shape); !shape.ok()) return refusal(shape.text());
      break;
    case FrameKind::message:
      frame.digest = first;
      frame.bytes = second;
      if (frame.bytes > kSlotBytesMax)
        return refusal("a payload of " + std::to_string(frame.bytes) + " bytes, more than any slot");
      break;
    case FrameKind::credit: break;
  }
  return frame;
}

FrameDecoder::FrameDecoder() : staging_(new std::byte[kStagingBytes]) {}

std::array<iovec, 2> FrameDecoder::space() {
  if (begin_ != 0) {
    std::memmove(staging_.get(), staging_.get() + begin_, end_ - begin_);  // less than a header
    end_ -= begin_;
    begin_ = 0;
  }
  const bool thrown_away = in_payload_ && payload_ == nullptr;
  const std::size_t ahead = large_ && !thrown_away ? kFrameBytes : kStagingBytes;
  const iovec staged{staging_.get() + end_, ahead - end_};
  if (in_payload_ && payload_ != nullptr && payload_done_ < frame_.bytes)
    return {iovec{payload_ + payload_done_, frame_.bytes - payload_done_}, staged};
  return {staged, iovec{nullptr, 0}};
}

void FrameDecoder::filled(std::size_t bytes) {
  if (in_payload_ && payload_ != nullptr) {
    const std::size_t direct = std::min(bytes, frame_.bytes - payload_done_);
    payload_done_ += direct;
    bytes -= direct;
  }
  end_ += bytes;
  SLUICE_DEBUG_ASSERT(end_ <= kStagingBytes, "more was read than there was space for");
}

Result<FrameDecoder::Event> FrameDecoder::next() {
  if (in_payload_) {
    const std::size_t taken = std::min(end_ - begin_, frame_.bytes - payload_done_);
    if (payload_ != nullptr && taken != 0) copy_bytes(payload_ + payload_done_, staging_.get() + begin_, taken);
    begin_ += taken;
    payload_done_ += taken;
    if (payload_done_ < frame_.bytes) return Event::nothing;
    in_payload_ = false;
    return Event::payload;
  }
  if (end_ - begin_ < kFrameBytes) return Event::nothing;
  SLUICE_TRY_ASSIGN(frame_,
                    decode_frame(std::span<const std::byte, kFrameBytes>(staging_.get() + begin_, kFrameBytes)));
  begin_ += kFrameBytes;
  if (frame_.kind == FrameKind::message) {
    in_payload_ = true;
    payload_ = nullptr;
    payload_done_ = 0;
    large_ = frame_.bytes >= kLargePayload;
  }
  return Event::header;
}

}  // namespace sluice
