// Any bytes as what arrives on a TCP link, cut into any pieces: the decoder gives the frames and payloads that a dumb reading
// of the whole text gives, and refuses where that does.
//
//   Input  one byte: a seed of the cuts and of which payloads are thrown away; the rest is the stream.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/rng.h"
#include "transport/tcp/frame.h"

namespace sluice {
namespace {

struct Arrival {
  Frame frame;
  std::optional<std::vector<std::byte>> payload;  // nullopt: none, or not whole, or thrown away
  bool operator==(const Arrival&) const = default;
};

struct Reading {
  std::vector<Arrival> arrivals;
  bool refused = false;
  bool operator==(const Reading&) const = default;
};

constexpr std::size_t kPayloadKeptMax = 1 << 17;  // larger ones are thrown away: they never arrive whole here

bool keeps(const Frame& frame, std::uint64_t seed) {
  return frame.bytes <= kPayloadKeptMax && mix64(seed + frame.bytes) % 4 != 0;
}

Reading read_dumbly(std::span<const std::byte> stream, std::uint64_t seed) {
  Reading reading;
  while (stream.size() >= kFrameBytes) {
    const Result<Frame> frame = decode_frame(stream.first<kFrameBytes>());
    if (!frame.ok()) {
      reading.refused = true;
      break;
    }
    stream = stream.subspan(kFrameBytes);
    reading.arrivals.push_back({*frame, std::nullopt});
    if (frame->kind != FrameKind::message) continue;
    if (frame->bytes > stream.size()) break;
    const auto payload = stream.first(frame->bytes);
    if (keeps(*frame, seed)) reading.arrivals.back().payload.emplace(payload.begin(), payload.end());
    stream = stream.subspan(frame->bytes);
  }
  return reading;
}

// Writes the next bytes of the stream to where the decoder wants them; returns how many.
std::size_t read_some(std::span<const std::byte> stream, std::size_t at_most, const std::array<iovec, 2>& space) {
  std::size_t done = 0;
  for (const iovec& part : space) {
    const std::size_t bytes = std::min({part.iov_len, stream.size() - done, at_most - done});
    if (bytes != 0) std::memcpy(part.iov_base, stream.data() + done, bytes);
    done += bytes;
  }
  return done;
}

Reading read_in_pieces(std::span<const std::byte> stream, std::uint64_t seed) {
  Reading reading;
  Rng rng(seed);
  FrameDecoder decoder;
  std::vector<std::byte> payload;
  bool kept = false;
  while (!stream.empty()) {
    const std::size_t bytes = read_some(stream, 1 + rng.below(rng.chance(0.5) ? 40 : 100'000), decoder.space());
    SLUICE_ASSERT(bytes != 0, "the decoder always has room for more");
    decoder.filled(bytes);
    stream = stream.subspan(bytes);
    for (;;) {
      const auto event = decoder.next();
      if (!event.ok()) {
        SLUICE_ASSERT(event.error().code == Code::refused && !event.error().text.empty(), "a refusal says why");
        reading.refused = true;
        return reading;
      }
      if (*event == FrameDecoder::Event::nothing) break;
      if (*event == FrameDecoder::Event::payload) {
        if (kept) reading.arrivals.back().payload = payload;
        continue;
      }
      reading.arrivals.push_back({decoder.frame(), std::nullopt});
      kept = decoder.frame().kind == FrameKind::message && keeps(decoder.frame(), seed);
      if (!kept) continue;
      payload.assign(decoder.frame().bytes, std::byte{0});
      decoder.place_payload(payload.data());
    }
  }
  return reading;
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace sluice;
  if (bytes == 0) return 0;
  const std::span stream(reinterpret_cast<const std::byte*>(data) + 1, bytes - 1);
  const Reading want = read_dumbly(stream, data[0]);
  SLUICE_ASSERT(read_in_pieces(stream, data[0]) == want, "how the stream is cut changes nothing");
  for (const Arrival& arrival : want.arrivals) {
    const auto again = decode_frame(encode(arrival.frame));
    SLUICE_ASSERT(again.ok() && again->number == arrival.frame.number && again->flow == arrival.frame.flow,
                  "a frame that was read can be written and read again");
  }
  return 0;
}
