// Every message survives its encoding; cut, lengthened or scrambled ones are refused and never read past their end.
#include "comm/bootstrap/messages.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {
namespace {

PeerInfo peer_of(int n) {
  PeerInfo peer;
  peer.host_name = "host-" + std::to_string(n);
  peer.host_id = 0x0123456789abcdefu + static_cast<unsigned>(n);
  peer.process_id = 0xfedcba9876543210u;
  peer.pid = 4000u + static_cast<unsigned>(n);
  peer.address = 0x0a000001;
  peer.port = 65535;
  peer.unix_name = "sluice-" + std::string(32, 'a');
  peer.cores = 0x1234567800000000u + static_cast<unsigned>(n);
  peer.tuning = 0x5555aaaa00000000u + static_cast<unsigned>(n);
  return peer;
}
bool same(const PeerInfo& a, const PeerInfo& b) {
  return a.host_name == b.host_name && a.host_id == b.host_id && a.process_id == b.process_id && a.pid == b.pid &&
         a.address == b.address && a.port == b.port && a.unix_name == b.unix_name && a.cores == b.cores &&
         a.tuning == b.tuning;
}
std::span<const std::byte> body(const Bytes& frame) { return std::span(frame).subspan(kFrameHeaderBytes); }
FrameHeader header(const Bytes& frame) { return *decode_header(std::span(frame).first<kFrameHeaderBytes>()); }

Flooded flooded_of(int n) {
  Flooded flooded;
  flooded.origin = n;
  flooded.sequence = 77;
  flooded.notice.kind = NoticeKind::shrink;
  flooded.notice.communicator = 0x1122334455667788u;
  flooded.notice.world_rank = 3;
  flooded.notice.code = Code::mismatch;
  flooded.notice.text = "rank 3: count";
  flooded.notice.payload.assign(100, std::byte{5});
  return flooded;
}

TEST(Messages, SurviveTheirEncoding) {
  const Bytes request = encode(JoinRequest{3, 8, 1500, peer_of(1)});
  EXPECT_EQ(header(request).type, FrameType::join_request);
  EXPECT_EQ(header(request).body_bytes, body(request).size());
  const auto got_request = decode_join_request(body(request));
  ASSERT_TRUE(got_request.ok());
  EXPECT_EQ(got_request->rank, 3);
  EXPECT_EQ(got_request->ranks, 8);
  EXPECT_EQ(got_request->remaining_ms, 1500u);
  EXPECT_TRUE(same(got_request->peer, peer_of(1)));

  const auto assignment = decode_assignment(body(encode(Assignment{1, peer_of(2)})));
  ASSERT_TRUE(assignment.ok());
  EXPECT_EQ(assignment->parent, 1);
  EXPECT_TRUE(same(assignment->peer, peer_of(2)));

  const auto failure = decode_join_failure(body(encode(JoinFailure{Code::timeout, "rank 2 is missing"})));
  ASSERT_TRUE(failure.ok());
  EXPECT_EQ(failure->code, Code::timeout);
  EXPECT_EQ(failure->text, "rank 2 is missing");

  const std::vector<PeerInfo> peers{peer_of(0), peer_of(1), peer_of(2)};
  const auto table = decode_table(body(encode_table(peers)));
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(same((*table)[i], peers[i]));

  const auto flooded = decode_flooded(body(encode(flooded_of(6))));
  ASSERT_TRUE(flooded.ok());
  EXPECT_EQ(flooded->origin, 6);
  EXPECT_EQ(flooded->sequence, 77u);
  EXPECT_EQ(flooded->notice.kind, NoticeKind::shrink);
  EXPECT_EQ(flooded->notice.communicator, flooded_of(6).notice.communicator);
  EXPECT_EQ(flooded->notice.world_rank, 3);
  EXPECT_EQ(flooded->notice.code, Code::mismatch);
  EXPECT_EQ(flooded->notice.text, flooded_of(6).notice.text);
  EXPECT_EQ(flooded->notice.payload, flooded_of(6).notice.payload);
}

TEST(Messages, AFarewellInTheNameOfAnotherIsRefused) {
  Flooded flooded = flooded_of(6);
  flooded.notice.kind = NoticeKind::peer_left;
  EXPECT_EQ(decode_flooded(body(encode(flooded))).error().code, Code::refused);
  flooded.notice.world_rank = 6;
  EXPECT_TRUE(decode_flooded(body(encode(flooded))).ok());
}

TEST(Messages, LongNamesAndTextsAreCutWhenWritten) {
  JoinRequest request{1, 2, 0, peer_of(0)};
  request.peer.host_name = std::string(1000, 'h');
  EXPECT_EQ(decode_join_request(body(encode(request)))->peer.host_name, std::string(kHostNameMax, 'h'));
  EXPECT_EQ(decode_join_failure(body(encode(JoinFailure{Code::timeout, std::string(5000, 't')})))->text.size(),
            kNoticeTextMax);
}

TEST(Messages, ANameCanNotWriteToTheTerminal) {
  JoinRequest request{1, 2, 0, peer_of(0)};
  request.peer.host_name = "evil\x1b[2J\nhost";
  EXPECT_EQ(decode_join_request(body(encode(request)))->peer.host_name, "evil?[2J?host");
}

// Each decoder on each cut of each message, and on one byte too many.
TEST(Messages, CutOrLengthenedOnesAreRefused) {
  const auto check = [](const Bytes& frame, const auto& decode) {
    for (std::size_t length = 0; length < body(frame).size(); ++length) {
      const Bytes cut(body(frame).begin(),
                      body(frame).begin() + static_cast<std::ptrdiff_t>(length));  // own memory: ASan sees
      EXPECT_EQ(decode(cut).error().code, Code::refused) << length;
    }
    Bytes longer(body(frame).begin(), body(frame).end());
    longer.push_back(std::byte{0});
    EXPECT_EQ(decode(longer).error().code, Code::refused);
  };
  const std::vector<PeerInfo> peers{peer_of(0), peer_of(1)};
  check(encode(JoinRequest{3, 8, 1, peer_of(1)}), [](const Bytes& b) { return decode_join_request(b); });
  check(encode(Assignment{1, peer_of(2)}), [](const Bytes& b) { return decode_assignment(b); });
  check(encode(JoinFailure{Code::timeout, "text"}), [](const Bytes& b) { return decode_join_failure(b); });
  check(encode_table(peers), [](const Bytes& b) { return decode_table(b); });
  check(encode(flooded_of(1)), [](const Bytes& b) { return decode_flooded(b); });
}

TEST(Messages, ATableThatClaimsMoreThanItHasIsRefusedBeforeMemoryIsTaken) {
  Bytes table = encode_table(std::vector<PeerInfo>{peer_of(0)});
  table[kFrameHeaderBytes + 1] = std::byte{0xff};  // 65281 ranks
  EXPECT_EQ(decode_table(body(table)).error().code, Code::refused);
}

TEST(Messages, AHeaderIsBoundedByItsType) {
  Bytes frame = encode_bare(FrameType::ready);
  frame[0] = std::byte{1};
  EXPECT_FALSE(decode_header(std::span(frame).first<kFrameHeaderBytes>()).ok());
  frame = encode(flooded_of(0));
  frame[2] = std::byte{1};  // 64 KiB
  EXPECT_FALSE(decode_header(std::span(frame).first<kFrameHeaderBytes>()).ok());
  frame = encode_bare(FrameType::detach);
  frame[4] = std::byte{kFrameTypes};
  EXPECT_FALSE(decode_header(std::span(frame).first<kFrameHeaderBytes>()).ok());
}

// Whatever a scrambled message decodes to is within bounds, and encodes to something that decodes.
TEST(Messages, ScrambledNoticesStayWithinBounds) {
  Rng rng(11);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    Bytes frame = encode(flooded_of(1));
    for (std::uint64_t flips = rng.below(4) + 1; flips > 0; --flips)
      frame[kFrameHeaderBytes + rng.below(body(frame).size())] = static_cast<std::byte>(rng.next());
    const auto got = decode_flooded(body(frame));
    if (!got.ok()) continue;
    ++accepted;
    EXPECT_LT(got->origin, kWorldRanksMax);
    EXPECT_GE(got->origin, 0);
    EXPECT_TRUE(decode_flooded(body(encode(*got))).ok());
  }
  EXPECT_GT(accepted, 1000);
}

TEST(UniqueId, SurvivesHexAndBack) {
  Rendezvous rendezvous;
  rendezvous.addresses = {0x0a000001, 0xc0a80001};
  rendezvous.port = 65000;
  rendezvous.ports = 16;
  rendezvous.host_id = 0x0123456789abcdefu;
  rendezvous.secret.fill(std::byte{0xa5});
  const auto id = unique_id_from_hex(to_hex(*to_unique_id(rendezvous)));
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*to_rendezvous(*id), rendezvous);
}

TEST(UniqueId, RefusesWhatIsNotOne) {
  EXPECT_FALSE(unique_id_from_hex("abc").ok());
  EXPECT_FALSE(unique_id_from_hex(std::string(256, 'g')).ok());
  EXPECT_FALSE(to_rendezvous(*unique_id_from_hex(std::string(256, '0'))).ok());
  Rendezvous rendezvous;
  rendezvous.addresses = {1};
  EXPECT_FALSE(to_unique_id(rendezvous).ok()) << "no port";
  rendezvous.port = 65535;
  rendezvous.ports = 2;
  EXPECT_FALSE(to_unique_id(rendezvous).ok()) << "ports beyond 65535";
  rendezvous.ports = 1;
  rendezvous.addresses.assign(9, 1);
  EXPECT_FALSE(to_unique_id(rendezvous).ok()) << "too many addresses";
  UniqueId id = *make_local_unique_id();
  id[127] = std::byte{1};
  EXPECT_FALSE(to_rendezvous(id).ok()) << "damaged tail";
  id = *make_local_unique_id();
  id[5] = std::byte{200};
  EXPECT_FALSE(to_rendezvous(id).ok()) << "too many addresses";
}

}  // namespace
}  // namespace sluice
