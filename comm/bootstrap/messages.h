// What is said on the bootstrap's streams, as bytes: pure encoding and decoding, nothing here touches a socket.
//
//   Handshake  three messages of fixed size: Hello (dialer), Nonce (listener), Proof (dialer), Proof (listener).
//   Frames     afterwards: a header of 8 bytes {u32 bytes of the body, u8 type, 3 zero} and the body. Numbers are little-endian.
//   Bounds     every type has a largest body, checked on the header, before a byte of the body is waited for.
//   Errors     a decoder returns refused with what is wrong; it never reads past its input and never believes a length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/bootstrap/control.h"
#include "comm/bootstrap/secrets.h"

namespace sluice {

inline constexpr int kWorldRanksMax = 1 << 16;
inline constexpr std::size_t kHostNameMax = 255;
inline constexpr std::size_t kUnixNameMax = 64;

enum class Purpose : std::uint8_t { join, tree, link_shared_memory, link_tcp };
inline constexpr int kPurposes = 4;
std::string_view name(Purpose purpose);

struct Hello {
  Purpose purpose = Purpose::join;
  Rank from = 0;
  Rank to = 0;  // whom the dialer believes to reach
  Nonce nonce{};
  std::uint8_t lane = 0;  // of a link
  bool operator==(const Hello&) const = default;
};
inline constexpr std::size_t kHelloBytes = 52;
std::array<std::byte, kHelloBytes> encode(const Hello& hello);
Result<Hello> decode_hello(std::span<const std::byte> bytes);

enum class FrameType : std::uint8_t {
  join_request,  // joiner to root
  assignment,    // root to joiner: everybody is here, go to your parent
  join_failure,  // root to joiner: the job won't start
  ready,         // child to parent: my subtree is connected
  table,         // parent to child: all peers; the job has started
  notice,        // both ways in the tree
  detach,        // this link is no longer needed; its end says nothing about the sender
};
inline constexpr int kFrameTypes = 7;
std::string_view name(FrameType type);
inline constexpr std::size_t kFrameHeaderBytes = 8;

struct FrameHeader {
  FrameType type = FrameType::ready;
  std::uint32_t body_bytes = 0;
};
Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes);

// The whole frame, header included.
using Bytes = std::vector<std::byte>;

struct JoinRequest {
  Rank rank = 0;
  int ranks = 1;
  std::uint32_t remaining_ms = 0;  // how long this joiner will still wait
  PeerInfo peer;
};
Bytes encode(const JoinRequest& request);
Result<JoinRequest> decode_join_request(std::span<const std::byte> body);

struct Assignment {
  Rank parent = 0;
  PeerInfo peer;
};
Bytes encode(const Assignment& assignment);
Result<Assignment> decode_assignment(std::span<const std::byte> body);

struct JoinFailure {
  Code code = Code::timeout;
  std::string text;  // at most kNoticeTextMax bytes, cut when longer
};
Bytes encode(const JoinFailure& failure);
Result<JoinFailure> decode_join_failure(std::span<const std::byte> body);

Bytes encode_table(std::span<const PeerInfo> peers);
Result<std::vector<PeerInfo>> decode_table(std::span<const std::byte> body);

// A notice on its way. peer_left speaks of its origin alone: it is how a rank says goodbye.
struct Flooded {
  Rank origin = 0;
  std::uint64_t sequence = 0;  // per origin, from 1
  Notice notice;
};
Bytes encode(const Flooded& flooded);
Result<Flooded> decode_flooded(std::span<const std::byte> body);

Bytes encode_bare(FrameType type);  // ready, detach

}  // namespace sluice
