#include "comm/bootstrap/messages.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "comm/bootstrap/bytes.h"

namespace sluice {
namespace {

constexpr std::uint64_t kMagic = 0x746f6f6253554c53;  // "SLUSboot"
constexpr std::uint16_t kVersion = 3;
constexpr std::size_t kPeerFixedBytes = 1 + 8 + 8 + 4 + 4 + 2 + 1 + 8 + 8;
constexpr std::size_t kPeerBytesMax = kPeerFixedBytes + kHostNameMax + kUnixNameMax;
constexpr std::size_t kNoticeFixedBytes = 4 + 8 + 1 + 8 + 4 + 1 + 2 + 2;

std::size_t body_bytes_max(FrameType type) {
  switch (type) {
    case FrameType::join_request: return 4 + 4 + 4 + kPeerBytesMax;
    case FrameType::assignment: return 4 + kPeerBytesMax;
    case FrameType::join_failure: return 1 + 2 + kNoticeTextMax;
    case FrameType::ready:
    case FrameType::detach: return 0;
    case FrameType::table: return 4 + kPeerBytesMax * kWorldRanksMax;
    case FrameType::notice: return kNoticeFixedBytes + kNoticeTextMax + kNoticePayloadMax;
  }
  return 0;
}

Error bad(FrameType type, std::string_view what) {
  return {Code::refused, "a " + std::string(name(type)) + " message is malformed: " + std::string(what)};
}

void put(ByteWriter& out, const PeerInfo& peer) {
  const std::string_view host = std::string_view(peer.host_name).substr(0, kHostNameMax);
  const std::string_view unix_name = std::string_view(peer.unix_name).substr(0, kUnixNameMax);
  out.number(static_cast<std::uint8_t>(host.size()));
  out.text(host);
  out.number(peer.host_id);
  out.number(peer.process_id);
  out.number(peer.pid);
  out.number(peer.address);
  out.number(peer.port);
  out.number(static_cast<std::uint8_t>(unix_name.size()));
  out.text(unix_name);
  out.number(peer.cores);
  out.number(peer.tuning);
}

// False when it is cut off or a name is too long.
bool get(ByteReader& in, PeerInfo& peer) {
  peer.host_name = in.text(in.number<std::uint8_t>());
  peer.host_id = in.number<std::uint64_t>();
  peer.process_id = in.number<std::uint64_t>();
  peer.pid = in.number<std::uint32_t>();
  peer.address = in.number<std::uint32_t>();
  peer.port = in.number<std::uint16_t>();
  const std::size_t unix_bytes = in.number<std::uint8_t>();
  if (unix_bytes > kUnixNameMax) return false;
  peer.unix_name = in.text(unix_bytes);
  peer.cores = in.number<std::uint64_t>();
  peer.tuning = in.number<std::uint64_t>();
  // A host name is shown to people: only what a name may hold.
  for (char& one : peer.host_name)
    if (one <= ' ' || one > '~') one = '?';
  return in.good();
}

bool is_rank(std::uint32_t rank) { return rank < static_cast<std::uint32_t>(kWorldRanksMax); }

bool get_code(ByteReader& in, Code& code) {
  const auto value = in.number<std::uint8_t>();
  code = static_cast<Code>(value);
  return in.good() && value <= static_cast<std::uint8_t>(Code::system);
}

Bytes framed(FrameType type, ByteWriter body) {
  ByteWriter out;
  out.number(static_cast<std::uint32_t>(body.size()));
  out.number(static_cast<std::uint8_t>(type));
  out.zeros(3);
  out.bytes(std::move(body).take());
  return std::move(out).take();
}

}  // namespace

std::string_view name(Purpose purpose) {
  switch (purpose) {
    case Purpose::join: return "join";
    case Purpose::tree: return "tree";
    case Purpose::link_shared_memory: return "link_shared_memory";
    case Purpose::link_tcp: return "link_tcp";
  }
  return "?";
}

std::string_view name(FrameType type) {
  constexpr std::array<std::string_view, kFrameTypes> kNames{"join_request", "assignment", "join_failure", "ready",
                                                             "table",        "notice",     "detach"};
  const auto index = static_cast<std::size_t>(type);
  return index < kNames.size() ? kNames[index] : "?";
}

std::array<std::byte, kHelloBytes> encode(const Hello& hello) {
  ByteWriter out;
  out.number(kMagic);
  out.number(kVersion);
  out.number(static_cast<std::uint8_t>(hello.purpose));
  out.number(hello.lane);
  out.number(static_cast<std::uint32_t>(hello.from));
  out.number(static_cast<std::uint32_t>(hello.to));
  out.bytes(hello.nonce);
  const Bytes written = std::move(out).take();
  std::array<std::byte, kHelloBytes> result{};
  std::copy(written.begin(), written.end(), result.begin());
  return result;
}

Result<Hello> decode_hello(std::span<const std::byte> bytes) {
  ByteReader in(bytes);
  if (in.number<std::uint64_t>() != kMagic) return Error{Code::refused, "it does not speak this protocol"};
  if (const auto version = in.number<std::uint16_t>(); version != kVersion)
    return Error{Code::refused, "it speaks version " + std::to_string(version) +
                                    " of the protocol, this build version " + std::to_string(kVersion) +
                                    ": use one build of Sluice for all ranks"};
  const auto purpose = in.number<std::uint8_t>();
  const auto lane = in.number<std::uint8_t>();
  const auto from = in.number<std::uint32_t>();
  const auto to = in.number<std::uint32_t>();
  Hello hello;
  in.copy_to(hello.nonce);
  if (!in.finished() || lane >= kLanes || purpose >= kPurposes || !is_rank(from) || !is_rank(to))
    return Error{Code::refused, "its greeting is malformed"};
  hello.purpose = static_cast<Purpose>(purpose);
  hello.lane = lane;
  hello.from = static_cast<Rank>(from);
  hello.to = static_cast<Rank>(to);
  return hello;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  ByteReader in(bytes);
  FrameHeader header;
  header.body_bytes = in.number<std::uint32_t>();
  const auto type = in.number<std::uint8_t>();
  const auto zeros = in.bytes(3);
  if (type >= kFrameTypes || std::any_of(zeros.begin(), zeros.end(), [](std::byte one) { return one != std::byte{0}; }))
    return Error{Code::refused, "a message of unknown type " + std::to_string(type)};
  header.type = static_cast<FrameType>(type);
  if (header.body_bytes > body_bytes_max(header.type))
    return bad(header.type, "it claims " + std::to_string(header.body_bytes) + " bytes, more than " +
                                std::to_string(body_bytes_max(header.type)));
  return header;
}

Bytes encode(const JoinRequest& request) {
  ByteWriter out;
  out.number(static_cast<std::uint32_t>(request.rank));
  out.number(static_cast<std::uint32_t>(request.ranks));
  out.number(request.remaining_ms);
  put(out, request.peer);
  return framed(FrameType::join_request, std::move(out));
}

Result<JoinRequest> decode_join_request(std::span<const std::byte> body) {
  ByteReader in(body);
  JoinRequest request;
  const auto rank = in.number<std::uint32_t>();
  const auto ranks = in.number<std::uint32_t>();
  request.remaining_ms = in.number<std::uint32_t>();
  if (!get(in, request.peer) || !in.finished()) return bad(FrameType::join_request, "wrong length");
  if (!is_rank(rank) || ranks < 1 || ranks > static_cast<std::uint32_t>(kWorldRanksMax))
    return bad(FrameType::join_request, "rank " + std::to_string(rank) + " of " + std::to_string(ranks) + " ranks");
  request.rank = static_cast<Rank>(rank);
  request.ranks = static_cast<int>(ranks);
  return request;
}

Bytes encode(const Assignment& assignment) {
  ByteWriter out;
  out.number(static_cast<std::uint32_t>(assignment.parent));
  put(out, assignment.peer);
  return framed(FrameType::assignment, std::move(out));
}

Result<Assignment> decode_assignment(std::span<const std::byte> body) {
  ByteReader in(body);
  Assignment assignment;
  const auto parent = in.number<std::uint32_t>();
  if (!get(in, assignment.peer) || !in.finished()) return bad(FrameType::assignment, "wrong length");
  if (!is_rank(parent)) return bad(FrameType::assignment, "parent " + std::to_string(parent));
  assignment.parent = static_cast<Rank>(parent);
  return assignment;
}

Bytes encode(const JoinFailure& failure) {
  const std::string_view text = std::string_view(failure.text).substr(0, kNoticeTextMax);
  ByteWriter out;
  out.number(static_cast<std::uint8_t>(failure.code));
  out.number(static_cast<std::uint16_t>(text.size()));
  out.text(text);
  return framed(FrameType::join_failure, std::move(out));
}

Result<JoinFailure> decode_join_failure(std::span<const std::byte> body) {
  ByteReader in(body);
  JoinFailure failure;
  if (!get_code(in, failure.code) || failure.code == Code::ok) return bad(FrameType::join_failure, "unknown code");
  failure.text = in.text(in.number<std::uint16_t>());
  if (!in.finished()) return bad(FrameType::join_failure, "wrong length");
  return failure;
}

Bytes encode_table(std::span<const PeerInfo> peers) {
  ByteWriter out;
  out.number(static_cast<std::uint32_t>(peers.size()));
  for (const PeerInfo& peer : peers) put(out, peer);
  return framed(FrameType::table, std::move(out));
}

Result<std::vector<PeerInfo>> decode_table(std::span<const std::byte> body) {
  ByteReader in(body);
  const auto ranks = in.number<std::uint32_t>();
  if (ranks < 1 || ranks > static_cast<std::uint32_t>(kWorldRanksMax) || ranks > in.left() / kPeerFixedBytes)
    return bad(FrameType::table,
               "it claims " + std::to_string(ranks) + " ranks in " + std::to_string(body.size()) + " bytes");
  std::vector<PeerInfo> peers(ranks);
  for (PeerInfo& peer : peers)
    if (!get(in, peer)) return bad(FrameType::table, "it is cut off");
  if (!in.finished()) return bad(FrameType::table, "it is too long");
  return peers;
}

Bytes encode(const Flooded& flooded) {
  const Notice& notice = flooded.notice;
  const std::string_view text = std::string_view(notice.text).substr(0, kNoticeTextMax);
  ByteWriter out;
  out.number(static_cast<std::uint32_t>(flooded.origin));
  out.number(flooded.sequence);
  out.number(static_cast<std::uint8_t>(notice.kind));
  out.number(notice.communicator);
  out.number(static_cast<std::uint32_t>(notice.world_rank));
  out.number(static_cast<std::uint8_t>(notice.code));
  out.number(static_cast<std::uint16_t>(text.size()));
  out.number(static_cast<std::uint16_t>(notice.payload.size()));
  out.text(text);
  out.bytes(notice.payload);
  return framed(FrameType::notice, std::move(out));
}

Result<Flooded> decode_flooded(std::span<const std::byte> body) {
  ByteReader in(body);
  Flooded flooded;
  const auto origin = in.number<std::uint32_t>();
  flooded.sequence = in.number<std::uint64_t>();
  const auto kind = in.number<std::uint8_t>();
  flooded.notice.communicator = in.number<std::uint64_t>();
  const auto world_rank = in.number<std::uint32_t>();
  if (!get_code(in, flooded.notice.code)) return bad(FrameType::notice, "unknown code");
  const std::size_t text_bytes = in.number<std::uint16_t>();
  const std::size_t payload_bytes = in.number<std::uint16_t>();
  if (text_bytes > kNoticeTextMax || payload_bytes > kNoticePayloadMax) return bad(FrameType::notice, "too long");
  flooded.notice.text = in.text(text_bytes);
  const auto payload = in.bytes(payload_bytes);
  flooded.notice.payload.assign(payload.begin(), payload.end());
  if (!in.finished()) return bad(FrameType::notice, "wrong length");
  if (!is_rank(origin) || !is_rank(world_rank) || flooded.sequence == 0 ||
      kind > static_cast<std::uint8_t>(NoticeKind::shrink))
    return bad(FrameType::notice, "a field is out of range");
  flooded.origin = static_cast<Rank>(origin);
  flooded.notice.kind = static_cast<NoticeKind>(kind);
  flooded.notice.world_rank = static_cast<Rank>(world_rank);
  if (flooded.notice.kind == NoticeKind::peer_left && flooded.notice.world_rank != flooded.origin)
    return bad(FrameType::notice, "a farewell in the name of another rank");
  return flooded;
}

Bytes encode_bare(FrameType type) { return framed(type, ByteWriter()); }

}  // namespace sluice
