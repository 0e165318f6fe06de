// A live ShmTransport against a peer that is only a stream, an arena and bad intentions.
#include "transport/shm/shm_transport.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/worlds.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

constexpr RingShape kShape{.slots = 4, .slot_bytes = 256};
constexpr FlowId kFlow{.communicator = 7, .lane = 1, .channel = 0};
constexpr std::size_t kRawArena = std::size_t{4} << 20;

// The other end of a link by hand: rank 1 of 3 unless it lies.
class RawPeer {
 public:
  explicit RawPeer(UniqueFd stream) : stream_(std::move(stream)) {}

  Record greeting() const {
    return {
        .kind = RecordKind::greeting, .arena = arena_->name(), .arena_bytes = arena_->bytes(), .rank = 1, .ranks = 3};
  }
  Record announcement(std::uint64_t offset = 8192, RingShape shape = kShape) const {
    return {.kind = RecordKind::open_flow, .flow = kFlow, .shape = shape, .offset = offset};
  }
  void greet(const Record& greeting) { greet(greeting, {arena_->memory_fd(), arena_->event_fd()}); }
  void greet(const Record& greeting, const std::vector<int>& descriptors) {
    const RecordBytes bytes = encode(greeting);
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(16 * sizeof(int))] = {};
    if (!descriptors.empty()) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ASSERT_EQ(::sendmsg(stream_.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(kRecordBytes));
  }
  void send(const Record& record) {
    const RecordBytes bytes = encode(record);
    send_bytes({bytes.begin(), bytes.end()});
  }
  void send_bytes(const std::vector<std::byte>& bytes) {
    ASSERT_EQ(::send(stream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  void close() { stream_.reset(); }
  Arena& arena() { return *arena_; }
  int memory_fd() const { return arena_->memory_fd(); }

 private:
  UniqueFd stream_;
  UniqueFd event_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::shared_ptr<Arena> arena_ = *Arena::create(kRawArena, event_.get());
};

class ShmAlone : public testing::Test {
 protected:
  void SetUp() override {
    test::StreamPair to_raw = test::unix_pair();
    transport_->adopt({1}, std::move(to_raw.a));
    raw_ = std::make_unique<RawPeer>(std::move(to_raw.b));
    test::StreamPair to_good = test::unix_pair();
    transport_->adopt({2}, std::move(to_good.a));
    good_->adopt({0}, std::move(to_good.b));
  }
  template <typename Done>
  bool until(const Done& done) {
    for (const auto deadline = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < deadline;) {
      if (done()) return true;
      if (transport_->progress() + good_->progress() == 0) std::this_thread::sleep_for(1us);
    }
    return false;
  }
  void expect_good_peer_undisturbed() {
    OutFlow& out = **transport_->open_out(2, kFlow, kShape);
    InFlow& in = **good_->open_in(0, kFlow, kShape);
    out.commit({.digest = 99, .bytes = 8});
    ASSERT_TRUE(until([&] { return in.ready(); }));
    EXPECT_EQ(in.header().digest, 99u);
    EXPECT_TRUE(transport_->peer_status(2).ok());
  }

  test::SilentDialer dialer_;
  std::unique_ptr<ShmTransport> transport_ = *ShmTransport::make(0, 3, test::with_arena("64M"), dialer_);
  std::unique_ptr<ShmTransport> good_ = *ShmTransport::make(2, 3, test::with_arena("64M"), dialer_);
  std::unique_ptr<RawPeer> raw_;
};

}  // namespace

TEST_F(ShmAlone, ReadsTheRingThatAPeerAnnounced) {
  InFlow& in = **transport_->open_in(1, kFlow, kShape);
  raw_->greet(raw_->greeting());
  raw_->send(raw_->announcement());
  OutFlow out;
  out.bind(Ring(raw_->arena().data() + 8192, kShape), {}, nullptr, 0);
  std::memcpy(out.reserve(5), "hello", 5);
  out.commit({.digest = 3, .bytes = 5});
  ASSERT_TRUE(until([&] { return in.ready(); }));
  EXPECT_EQ(std::memcmp(in.payload(in.header()), "hello", 5), 0);
  in.release();
  EXPECT_EQ(out.released(), 1u);
}

TEST_F(ShmAlone, BelievesNoHeaderInThePeersMemory) {
  InFlow& in = **transport_->open_in(1, kFlow, kShape);
  raw_->greet(raw_->greeting());
  raw_->send(raw_->announcement());
  Ring ring(raw_->arena().data() + 8192, kShape);
  std::uint64_t message = 0;
  for (const SlotHeader header :
       {SlotHeader{1, kShape.slot_bytes + 1, SlotHeader::kNoWindow}, SlotHeader{1, 0xffffffff, SlotHeader::kNoWindow},
        SlotHeader{1, 1, kRawArena}, SlotHeader{1, 64, kRawArena - 63}, SlotHeader{1, 1, SlotHeader::kNoWindow - 1}}) {
    ring.publish(message++, header);
    ASSERT_TRUE(until([&] { return in.ready(); }));
    EXPECT_EQ(in.payload(in.header()), nullptr) << header.bytes << " bytes at " << header.window_offset;
    in.release();
  }
  ring.publish(message + kShape.slots, {1, 64, kRawArena - 64});  // a number that is not its turn
  EXPECT_FALSE(in.ready());
  ring.publish(message, {1, 64, kRawArena - 64});
  ASSERT_TRUE(in.ready());
  EXPECT_EQ(in.payload(in.header()),
            raw_->arena().data() + kRawArena - 64);  // shared within the process, so the address is known
  expect_good_peer_undisturbed();
}

TEST_F(ShmAlone, UsesARingsPlaceAgainOnlyAfterThePeerClosedIt) {
  raw_->greet(raw_->greeting());
  const std::size_t before = transport_->free_bytes();
  ASSERT_TRUE(until([&] { return transport_->progress() == 0; }));
  ASSERT_TRUE(transport_->open_out(1, kFlow, kShape).ok());
  for (int i = 0; i < 1000; ++i) transport_->progress();  // the greeting is taken, the flow announced
  ASSERT_LT(transport_->free_bytes(), before);
  transport_->close_flows(kFlow.communicator);
  for (int i = 0; i < 1000; ++i) transport_->progress();
  EXPECT_LT(transport_->free_bytes(), before) << "the peer may still write its released count";
  raw_->send({.kind = RecordKind::close_communicator, .flow = kFlow});
  EXPECT_TRUE(until([&] { return transport_->free_bytes() == before; }));
}

TEST_F(ShmAlone, SaysWhatToDoWhenTheArenaIsFull) {
  constexpr RingShape kLarge{.slots = 40, .slot_bytes = 1 << 20};
  ASSERT_TRUE(transport_->open_out(1, {.communicator = 1}, kLarge).ok());
  const auto second = transport_->open_out(1, {.communicator = 2}, kLarge);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::out_of_resource);
  EXPECT_NE(second.error().text.find("SLUICE_ARENA_BYTES"), std::string::npos);
  EXPECT_EQ(transport_->allocate_window(std::size_t{60} << 20), nullptr);
  void* const window = transport_->allocate_window(1 << 20);
  ASSERT_NE(window, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(window) % 4096, 0u);
  transport_->free_window(window);
  transport_->free_window(nullptr);
}

struct ShmAttack {
  std::string name;
  std::function<void(RawPeer&)> act;
  Code code = Code::refused;
  std::string says;
};
void PrintTo(const ShmAttack& attack, std::ostream* out) { *out << attack.name; }

class ShmUnderAttack : public ShmAlone, public testing::WithParamInterface<ShmAttack> {};

TEST_P(ShmUnderAttack, LosesThatLinkAlone) {
  OutFlow& out = **transport_->open_out(1, kFlow, kShape);
  InFlow& in = **transport_->open_in(1, kFlow, kShape);
  transport_->progress();
  GetParam().act(*raw_);
  ASSERT_TRUE(until([&] { return !transport_->peer_status(1).ok(); })) << "not noticed";
  EXPECT_EQ(transport_->peer_status(1).code(), GetParam().code);
  EXPECT_NE(transport_->peer_status(1).text().find(GetParam().says), std::string::npos)
      << transport_->peer_status(1).text();
  EXPECT_NE(transport_->peer_status(1).text().find("rank 1"), std::string::npos);
  while (out.room() > 0) out.commit({.digest = 1, .bytes = 10});
  EXPECT_FALSE(in.ready());
  transport_->close_flows(kFlow.communicator + 1);
  expect_good_peer_undisturbed();
}

// Greets honestly, then sends this.
std::function<void(RawPeer&)> after_greeting(std::function<Record(RawPeer&)> record) {
  return [record = std::move(record)](RawPeer& peer) {
    peer.greet(peer.greeting());
    peer.send(record(peer));
  };
}

const std::vector<ShmAttack> kAttacks{
    {"noise", [](RawPeer& peer) { peer.send_bytes(std::vector<std::byte>(640, std::byte{0x5a})); }, Code::refused,
     "not of this version"},
    {"no_greeting", [](RawPeer& peer) { peer.send(peer.announcement()); }, Code::refused, "before the greeting"},
    {"wrong_rank",
     [](RawPeer& peer) {
       Record lie = peer.greeting();
       lie.rank = 2;
       peer.greet(lie);
     },
     Code::refused, "rank 2 of 3"},
    {"wrong_world",
     [](RawPeer& peer) {
       Record lie = peer.greeting();
       lie.ranks = 4;
       peer.greet(lie);
     },
     Code::refused, "rank 1 of 4"},
    {"no_descriptors", [](RawPeer& peer) { peer.greet(peer.greeting(), {}); }, Code::refused,
     "without the descriptors"},
    {"one_descriptor", [](RawPeer& peer) { peer.greet(peer.greeting(), {peer.memory_fd()}); }, Code::refused,
     "descriptors"},
    {"many_descriptors", [](RawPeer& peer) { peer.greet(peer.greeting(), std::vector<int>(16, peer.memory_fd())); },
     Code::refused, "descriptors"},
    {"descriptors_twice", [](RawPeer& peer) { peer.greet(peer.greeting()), peer.greet(peer.greeting()); },
     Code::refused, ""},
    {"descriptors_swapped",
     [](RawPeer& peer) {
       peer.greet(peer.greeting(), {peer.arena().event_fd(), peer.memory_fd()});
     },
     Code::refused, ""},
    {"greeting_twice", [](RawPeer& peer) { peer.greet(peer.greeting()), peer.send(peer.greeting()); }, Code::refused,
     "second greeting"},
    {"arena_of_another_size",
     [](RawPeer& peer) {
       Record lie = peer.greeting();
       lie.arena_bytes *= 2;
       peer.greet(lie);
     },
     Code::refused, "arena"},
    {"arena_of_impossible_size",
     [](RawPeer& peer) {
       Record lie = peer.greeting();
       lie.arena_bytes = ~0ull;
       peer.greet(lie);
     },
     Code::refused, "can't be"},
    {"arena_not_sealed",
     [](RawPeer& peer) {
       const UniqueFd open(::memfd_create("test", MFD_CLOEXEC));
       ASSERT_EQ(::ftruncate(open.get(), static_cast<off_t>(kRawArena)), 0);
       Record lie = peer.greeting();
       lie.arena = {5, 5};
       peer.greet(lie, {open.get(), peer.arena().event_fd()});
     },
     Code::refused, "sealed"},
    {"unknown_kind",
     [](RawPeer& peer) {
       peer.greet(peer.greeting());
       RecordBytes bytes = encode(peer.announcement());
       bytes[4] = std::byte{9};
       peer.send_bytes({bytes.begin(), bytes.end()});
     },
     Code::refused, "unknown kind 9"},
    {"ring_in_the_head", after_greeting([](RawPeer& peer) { return peer.announcement(0); }), Code::refused,
     "can't lie"},
    {"ring_not_aligned", after_greeting([](RawPeer& peer) { return peer.announcement(8193); }), Code::refused,
     "can't lie"},
    {"ring_behind_the_end", after_greeting([](RawPeer& peer) { return peer.announcement(kRawArena); }), Code::refused,
     "can't lie"},
    {"ring_over_the_end",
     after_greeting([](RawPeer& peer) { return peer.announcement(kRawArena - ring_bytes(kShape) + 64); }),
     Code::refused, "can't lie"},
    {"ring_that_wraps", after_greeting([](RawPeer& peer) { return peer.announcement(~std::uint64_t{63}); }),
     Code::refused, "can't lie"},
    {"ring_larger_than_the_arena", after_greeting([](RawPeer& peer) {
       return peer.announcement(8192, {4, 1 << 20});
     }),
     Code::refused, "can't lie"},
    {"ring_of_impossible_shape", after_greeting([](RawPeer& peer) {
       return peer.announcement(8192, {0xffffffff, 0xffffffc0});
     }),
     Code::refused, "slots"},
    {"ring_of_another_shape", after_greeting([](RawPeer& peer) {
       return peer.announcement(8192, {8, 256});
     }),
     Code::refused, "8 slots of 256"},
    {"announced_twice",
     [](RawPeer& peer) { peer.greet(peer.greeting()), peer.send(peer.announcement()), peer.send(peer.announcement()); },
     Code::refused, "twice"},
    {"closes_at_once", [](RawPeer& peer) { peer.close(); }, Code::peer_lost, "closed the link"},
    {"closes_in_a_record",
     [](RawPeer& peer) { peer.greet(peer.greeting()), peer.send_bytes(std::vector<std::byte>(63)), peer.close(); },
     Code::peer_lost, ""},
};
INSTANTIATE_TEST_SUITE_P(Attacks, ShmUnderAttack, testing::ValuesIn(kAttacks),
                         [](const auto& attack) { return attack.param.name; });

}  // namespace sluice
