// The decoder against a dumb one that has the whole stream before it, cut at every byte, and fed with noise.
#include "transport/tcp/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/rng.h"

namespace sluice {
namespace {

using Bytes = std::vector<std::byte>;

struct Whole {  // a frame with its payload
  Frame frame;
  Bytes payload;
  bool operator==(const Whole&) const = default;
};

Whole random_frame(Rng& rng, std::uint32_t most) {
  Whole made;
  made.frame.kind = static_cast<FrameKind>(rng.below(4));
  if (made.frame.kind != FrameKind::greeting)
    made.frame.flow = {rng.next(), static_cast<std::uint8_t>(rng.next()), static_cast<std::uint8_t>(rng.next())};
  if (made.frame.kind == FrameKind::greeting)
    made.frame.rank = static_cast<std::uint32_t>(rng.next()), made.frame.ranks = static_cast<std::uint32_t>(rng.next());
  if (made.frame.kind == FrameKind::open)
    made.frame.shape = {static_cast<std::uint32_t>(1 + rng.below(kSlotsMax)),
                        static_cast<std::uint32_t>(64 * (1 + rng.below(1000)))};
  if (made.frame.kind == FrameKind::credit || made.frame.kind == FrameKind::message) made.frame.number = rng.next();
  if (made.frame.kind == FrameKind::message) {
    made.frame.digest = static_cast<std::uint32_t>(rng.next());
    made.frame.bytes = static_cast<std::uint32_t>(rng.chance(0.3) ? rng.below(40) : rng.below(most + 1));
    made.payload.resize(made.frame.bytes);
    for (std::byte& byte : made.payload) byte = static_cast<std::byte>(rng.next());
  }
  return made;
}

Bytes wire_of(const std::vector<Whole>& frames) {
  Bytes wire;
  for (const Whole& each : frames) {
    const FrameBytes header = encode(each.frame);
    wire.insert(wire.end(), header.begin(), header.end());
    wire.insert(wire.end(), each.payload.begin(), each.payload.end());
  }
  return wire;
}

// What a decoder makes of `wire`, given to it in pieces of at most piece() bytes. Frames whose payload is not whole are
// left out.
class Reader {
 public:
  Status read(const Bytes& wire, const std::function<std::size_t()>& piece) {
    for (std::size_t at = 0; at < wire.size();) {
      const std::size_t most = std::min(piece(), wire.size() - at);
      std::size_t given = 0;
      for (const iovec& part : decoder_.space()) {
        const std::size_t bytes = std::min(part.iov_len, most - given);
        if (bytes != 0) std::memcpy(part.iov_base, wire.data() + at + given, bytes);
        given += bytes;
      }
      EXPECT_GT(given, 0u);
      at += given;
      decoder_.filled(given);
      SLUICE_TRY(take());
    }
    return {};
  }
  std::vector<Whole> frames;

 private:
  Status take() {
    for (;;) {
      SLUICE_TRY_ASSIGN(const FrameDecoder::Event event, decoder_.next());
      if (event == FrameDecoder::Event::nothing) return {};
      if (event == FrameDecoder::Event::payload) {
        frames.push_back({decoder_.frame(), payload_});
      } else if (decoder_.frame().kind != FrameKind::message) {
        frames.push_back({decoder_.frame(), {}});
      } else {
        payload_.assign(decoder_.frame().bytes, std::byte{0xee});
        decoder_.place_payload(payload_.data());
      }
    }
  }
  FrameDecoder decoder_;
  Bytes payload_;
};

FrameBytes with(FrameBytes bytes, std::size_t at, std::uint8_t value) {
  bytes[at] = std::byte{value};
  return bytes;
}

}  // namespace

TEST(Frame, LiesOnTheWireAsWritten) {
  const FrameBytes bytes = encode({.kind = FrameKind::message,
                                   .flow = {.communicator = 0x1122334455667788, .lane = 2, .channel = 9},
                                   .number = 0x0102030405060708,
                                   .digest = 0xa1a2a3a4,
                                   .bytes = 0x00010203});
  const std::vector<int> want{0x53, 0x4c, 0x43, 0x31, 2, 2, 9, 0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
                              8,    7,    6,    5,    4, 3, 2, 1, 0xa4, 0xa3, 0xa2, 0xa1, 3,    2,    1,    0};
  for (std::size_t i = 0; i < kFrameBytes; ++i) EXPECT_EQ(std::to_integer<int>(bytes[i]), want[i]) << "byte " << i;
}

TEST(Frame, ComesBackFromItsBytes) {
  Rng rng(1);
  for (int i = 0; i < 2000; ++i) {
    const Frame frame = random_frame(rng, 100).frame;
    EXPECT_EQ(*decode_frame(encode(frame)), frame);
  }
}

TEST(Frame, IsRefusedWithAnyFieldThatCannotBe) {
  const FrameBytes message = encode({.kind = FrameKind::message, .bytes = 5});
  for (std::size_t at = 0; at < 4; ++at)
    EXPECT_EQ(decode_frame(with(message, at, 0)).error().code, Code::refused) << "magic " << at;
  for (const std::uint8_t kind : std::vector<std::uint8_t>{4, 5, 100, 255})
    EXPECT_EQ(decode_frame(with(message, 4, kind)).error().code, Code::refused);
  EXPECT_EQ(decode_frame(with(message, 7, 1)).error().code, Code::refused);
  EXPECT_EQ(decode_frame(with(message, 31, 0xff)).error().code, Code::refused) << "a payload larger than any slot";
  for (const RingShape shape : {RingShape{0, 64}, RingShape{1, 0}, RingShape{1, 65}, RingShape{kSlotsMax + 1, 64},
                                RingShape{1, kSlotBytesMax + 64}})
    EXPECT_EQ(decode_frame(encode({.kind = FrameKind::open, .shape = shape})).error().code, Code::refused);
}

TEST(FrameDecoder, CutsAStreamInAnyPieces) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Rng rng(seed);
    std::vector<Whole> frames;
    for (int i = 0; i < 40; ++i) frames.push_back(random_frame(rng, seed % 3 == 0 ? 100'000 : 600));
    const std::size_t most = std::size_t{1} << rng.below(18);
    Reader reader;
    ASSERT_TRUE(reader.read(wire_of(frames), [&] { return 1 + rng.below(most); }).ok()) << "seed " << seed;
    EXPECT_EQ(reader.frames, frames) << "seed " << seed;
  }
}

TEST(FrameDecoder, GivesNothingEarlyAtEveryTruncation) {
  Rng rng(9);
  std::vector<Whole> frames;
  for (int i = 0; i < 12; ++i) frames.push_back(random_frame(rng, 60));
  const Bytes wire = wire_of(frames);
  for (std::size_t cut = 0; cut <= wire.size(); ++cut) {
    std::vector<Whole> whole;  // those that end before the cut
    std::size_t end = 0;
    for (const Whole& each : frames) {
      end += kFrameBytes + each.payload.size();
      if (end <= cut) whole.push_back(each);
    }
    Reader reader;
    ASSERT_TRUE(reader.read({wire.begin(), wire.begin() + static_cast<long>(cut)}, [] { return std::size_t{7}; }).ok());
    EXPECT_EQ(reader.frames, whole) << "cut after " << cut << " bytes";
  }
}

TEST(FrameDecoder, ThrowsAwayWhatNobodyWantsEvenFromTheMiddle) {
  Rng rng(4);
  for (const std::uint32_t bytes : {0u, 1u, 31u, 5000u, 16384u, 200'000u}) {
    const std::vector<Whole> frames{{{.kind = FrameKind::message, .bytes = bytes}, Bytes(bytes, std::byte{3})},
                                    {{.kind = FrameKind::credit, .number = 77}, {}}};
    const Bytes wire = wire_of(frames);
    for (const bool from_the_middle : {false, true}) {
      FrameDecoder decoder;
      Bytes place(bytes + 1, std::byte{0});
      std::optional<std::uint64_t> credit;
      int reads = 0;
      for (std::size_t at = 0; at < wire.size(); ++reads) {
        std::size_t given = 0;
        for (const iovec& part : decoder.space()) {
          const std::size_t most = std::min({part.iov_len, wire.size() - at - given, std::size_t{40'000} - given});
          if (most != 0) std::memcpy(part.iov_base, wire.data() + at + given, most);
          given += most;
        }
        at += given;
        decoder.filled(given);
        for (auto event = *decoder.next(); event != FrameDecoder::Event::nothing; event = *decoder.next()) {
          if (event != FrameDecoder::Event::header) continue;
          if (decoder.frame().kind == FrameKind::message)
            decoder.place_payload(from_the_middle ? place.data() : nullptr);
          if (decoder.frame().kind == FrameKind::credit) credit = decoder.frame().number;
        }
        decoder.place_payload(nullptr);  // its memory is gone
        std::fill(place.begin(), place.end(), std::byte{0});
      }
      EXPECT_EQ(credit, 77u) << bytes;
      EXPECT_LE(reads, 12) << "thrown away in small pieces";
      EXPECT_EQ(std::count(place.begin(), place.end(), std::byte{0}), static_cast<long>(bytes) + 1);
    }
  }
}

TEST(FrameDecoder, ReadsALargePayloadStraightToItsPlace) {
  constexpr std::uint32_t kBytes = 1 << 17;
  FrameDecoder decoder;
  Bytes place(kBytes);
  std::size_t copied = 0;
  for (int message = 0; message < 4; ++message) {
    const FrameBytes header =
        encode({.kind = FrameKind::message, .number = static_cast<std::uint64_t>(message), .bytes = kBytes});
    auto space = decoder.space();
    if (message == 0) {
      std::memcpy(space[0].iov_base, header.data(), kFrameBytes);
      decoder.filled(kFrameBytes);
    }
    ASSERT_EQ(*decoder.next(), FrameDecoder::Event::header);
    decoder.place_payload(place.data());
    ASSERT_EQ(*decoder.next(), FrameDecoder::Event::nothing);
    space = decoder.space();
    EXPECT_EQ(space[0].iov_base, place.data());
    EXPECT_EQ(space[0].iov_len, kBytes);
    EXPECT_EQ(space[1].iov_len, kFrameBytes) << "reads the next header along, and not its payload";
    copied += space[1].iov_len;
    const FrameBytes next =
        encode({.kind = FrameKind::message, .number = static_cast<std::uint64_t>(message + 1), .bytes = kBytes});
    std::memset(space[0].iov_base, message, kBytes);
    std::memcpy(space[1].iov_base, next.data(), kFrameBytes);
    decoder.filled(kBytes + kFrameBytes);
    ASSERT_EQ(*decoder.next(), FrameDecoder::Event::payload);
    EXPECT_EQ(std::count(place.begin(), place.end(), static_cast<std::byte>(message)), static_cast<long>(kBytes));
  }
  EXPECT_EQ(copied, 4 * kFrameBytes);
}

TEST(FrameDecoder, SurvivesNoiseAndFlippedBits) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Rng rng(seed);
    std::vector<Whole> frames;
    for (int i = 0; i < 10; ++i) frames.push_back(random_frame(rng, 300));
    Bytes wire = wire_of(frames);
    for (std::uint64_t flips = 1 + rng.below(4); flips != 0; --flips)
      wire[rng.below(wire.size())] ^= static_cast<std::byte>(1 << rng.below(8));
    if (seed % 4 == 0)
      for (std::byte& byte : wire) byte = static_cast<std::byte>(rng.next());
    Reader reader;
    const Status status = reader.read(wire, [&] { return 1 + rng.below(2000); });
    EXPECT_TRUE(status.ok() || status.code() == Code::refused);
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, 150);
}

}  // namespace sluice
