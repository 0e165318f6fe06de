// What the parts of the conformance suite share: messages whose every byte is known, and the fixture.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/rng.h"
#include "tests/conformance/worlds.h"
#include "transport/transport.h"

namespace sluice::test {

inline constexpr RingShape kShape{.slots = 4, .slot_bytes = 256};

inline FlowId flow(std::uint64_t communicator, std::uint8_t lane = 0, std::uint8_t channel = 0) {
  return {.communicator = communicator, .lane = lane, .channel = channel};
}

// Message `number` of a flow marked `mark`: its bytes are a function of both.
inline std::byte byte_of(std::uint64_t mark, std::uint64_t number, std::size_t at) {
  return static_cast<std::byte>(mix64(mark * 1000003 + number) + at * 7);
}
inline std::uint32_t size_of(std::uint64_t mark, std::uint64_t number, std::uint32_t most) {
  return static_cast<std::uint32_t>(mix64(mark ^ (number << 20)) % (most + 1));
}

inline void commit_message(OutFlow& out, std::uint64_t mark, std::uint64_t number, std::uint32_t bytes) {
  std::byte* const slot = out.reserve(bytes);
  for (std::uint32_t i = 0; i < bytes; ++i) slot[i] = byte_of(mark, number, i);
  out.commit({.digest = static_cast<std::uint32_t>(mix64(mark ^ number)), .bytes = bytes});
}

inline testing::AssertionResult holds_message(const InFlow& in, std::uint64_t mark, std::uint64_t number,
                                              std::uint32_t bytes, std::uint64_t ahead = 0) {
  const SlotHeader header = in.header(ahead);
  if (header.digest != static_cast<std::uint32_t>(mix64(mark ^ number)))
    return testing::AssertionFailure() << "digest of another message than " << number;
  if (header.bytes != bytes || header.described())
    return testing::AssertionFailure() << "message " << number << " has " << header.bytes << " bytes, not " << bytes;
  const std::byte* const payload = in.payload(header, ahead);
  if (payload == nullptr) return testing::AssertionFailure() << "no payload";
  for (std::uint32_t i = 0; i < bytes; ++i)
    if (payload[i] != byte_of(mark, number, i))
      return testing::AssertionFailure() << "message " << number << " differs at byte " << i;
  return testing::AssertionSuccess();
}

class OnTransport : public testing::TestWithParam<WorldKind> {
 protected:
  World& make(int ranks) {
    world_ = GetParam().make(ranks);
    return *world_;
  }
  OutFlow& out(Rank from, Rank to, FlowId id, RingShape shape = kShape) {
    return **world_->transport(from).open_out(to, id, shape);
  }
  InFlow& in(Rank from, Rank to, FlowId id, RingShape shape = kShape) {
    return **world_->transport(to).open_in(from, id, shape);
  }

  std::unique_ptr<World> world_;
};
inline std::string name_of_kind(const testing::TestParamInfo<WorldKind>& kind) { return kind.param.name; }

}  // namespace sluice::test
