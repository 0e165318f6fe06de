// Any bytes as what a stranger or a traitor says to a listener of the bootstrap: unique ids, greetings and proofs, frames one
// after another. Whatever is accepted is within its bounds and means the same after being written again.
//
//   Input  one byte: what is read; the rest is what is said.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/assert.h"
#include "comm/bootstrap/handshake.h"
#include "comm/bootstrap/messages.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {
namespace {

std::span<const std::byte> body(const Bytes& frame) { return std::span(frame).subspan(kFrameHeaderBytes); }

void check_peer(const PeerInfo& peer) {
  SLUICE_ASSERT(peer.host_name.size() <= kHostNameMax && peer.unix_name.size() <= kUnixNameMax, "names are bounded");
  for (const char one : peer.host_name) SLUICE_ASSERT(one > ' ' && one <= '~', "a host name can be shown");
}

// Written again, it is accepted again, and then writes the same bytes.
template <typename Decode, typename Encode>
void check_again(const Bytes& written, Decode decode, Encode encode) {
  const auto again = decode(body(written));
  SLUICE_ASSERT(again.ok(), "what was accepted once is accepted again");
  SLUICE_ASSERT(encode(*again) == written, "and means the same");
}

void read_body(FrameType type, std::span<const std::byte> bytes) {
  const auto written = [](const auto& value) { return encode(value); };
  if (type == FrameType::join_request) {
    const auto got = decode_join_request(bytes);
    if (!got.ok()) return;
    check_peer(got->peer);
    SLUICE_ASSERT(got->rank >= 0 && got->rank < kWorldRanksMax && got->ranks >= 1 && got->ranks <= kWorldRanksMax,
                  "ranks");
    check_again(encode(*got), decode_join_request, written);
  } else if (type == FrameType::assignment) {
    const auto got = decode_assignment(bytes);
    if (!got.ok()) return;
    check_peer(got->peer);
    SLUICE_ASSERT(got->parent >= 0 && got->parent < kWorldRanksMax, "a parent is a rank");
    check_again(encode(*got), decode_assignment, written);
  } else if (type == FrameType::join_failure) {
    const auto got = decode_join_failure(bytes);
    if (!got.ok()) return;
    SLUICE_ASSERT(got->code != Code::ok, "a failure is no success");
    check_again(encode(*got), decode_join_failure, written);
  } else if (type == FrameType::table) {
    const auto got = decode_table(bytes);
    if (!got.ok()) return;
    for (const PeerInfo& peer : *got) check_peer(peer);
    check_again(encode_table(*got), decode_table,
                [](const std::vector<PeerInfo>& peers) { return encode_table(peers); });
  } else if (type == FrameType::notice) {
    const auto got = decode_flooded(bytes);
    if (!got.ok()) return;
    SLUICE_ASSERT(got->notice.text.size() <= kNoticeTextMax && got->notice.payload.size() <= kNoticePayloadMax,
                  "bounds");
    SLUICE_ASSERT(got->origin >= 0 && got->origin < kWorldRanksMax && got->sequence > 0, "an origin is a rank");
    check_again(encode(*got), decode_flooded, written);
  }
}

void read_frames(std::span<const std::byte> stream) {
  while (stream.size() >= kFrameHeaderBytes) {
    const auto header = decode_header(stream.first<kFrameHeaderBytes>());
    if (!header.ok()) return;
    stream = stream.subspan(kFrameHeaderBytes);
    // A stream that ends early: what there is must be refused or read without harm too.
    const auto part = stream.first(std::min<std::size_t>(header->body_bytes, stream.size()));
    read_body(header->type, part);
    stream = stream.subspan(part.size());
  }
}

void greet(std::span<const std::byte> stream) {
  Nonce nonce{};
  Handshake listener = Handshake::listener(Secret{}, 0, nonce);
  std::size_t said = 0;
  while (!listener.done() && stream.size() >= listener.wanted()) {
    const auto part = stream.first(listener.wanted());
    stream = stream.subspan(part.size());
    if (!listener.feed(part).ok()) break;
    said += listener.take_output().size();
  }
  SLUICE_ASSERT(!listener.done() || said == sizeof(Nonce) + sizeof(Proof), "only the proved hear more than a nonce");
  SLUICE_ASSERT(listener.done() || said <= sizeof(Nonce), "a stranger hears a nonce at most");
  if (!listener.greeted()) return;
  SLUICE_ASSERT(decode_hello(encode(listener.hello())).ok(), "a greeting that was accepted is well formed");
}

void read_unique_id(std::span<const std::byte> bytes) {
  UniqueId id{};
  std::copy_n(bytes.begin(), std::min(bytes.size(), id.size()), id.begin());
  if (const auto rendezvous = to_rendezvous(id); rendezvous.ok()) {
    const auto again = to_unique_id(*rendezvous);
    SLUICE_ASSERT(again.ok() && *to_rendezvous(*again) == *rendezvous, "an id that was read can be written");
  }
  const auto text = unique_id_from_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  SLUICE_ASSERT(!text.ok() || unique_id_from_hex(to_hex(*text)).ok(), "hexadecimal digits come back");
}

}  // namespace
}  // namespace sluice

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto all = std::as_bytes(std::span(data, size));
  if (all.empty()) return 0;
  const auto said = all.subspan(1);
  switch (data[0] % 4) {
    case 0: sluice::greet(said); break;
    case 1: sluice::read_unique_id(said); break;
    case 2: sluice::read_frames(said); break;
    default: sluice::read_body(static_cast<sluice::FrameType>(data[0] / 4 % sluice::kFrameTypes), said); break;
  }
  return 0;
}
