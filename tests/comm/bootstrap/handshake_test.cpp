// The handshake byte by byte, and every way to cheat that one can think of.
#include "comm/bootstrap/handshake.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

Secret secret_of(int n) {
  Secret secret{};
  secret.fill(static_cast<std::byte>(n));
  return secret;
}
Nonce nonce_of(int n) {
  Nonce nonce{};
  nonce.fill(static_cast<std::byte>(n));
  return nonce;
}
Hello hello_of(Purpose purpose, Rank from, Rank to) { return {purpose, from, to, nonce_of(9)}; }

// Passes bytes both ways until both are done or one refuses; `alter(step, bytes)` may change what is under way.
template <typename Alter>
Status run(Handshake& dialer, Handshake& listener, Alter alter) {
  for (int step = 0; step < 4; ++step) {
    Bytes bytes = (step % 2 == 0 ? dialer : listener).take_output();
    alter(step, bytes);
    Handshake& to = step % 2 == 0 ? listener : dialer;
    if (bytes.size() != to.wanted()) return {Code::system, "sizes"};
    if (const Status fed = to.feed(bytes); !fed.ok()) return fed;
  }
  return {};
}
void honestly(int, Bytes&) {}

TEST(Handshake, BothEndDoneAndTheListenerKnowsWhoCameForWhat) {
  Handshake dialer = Handshake::dialer(secret_of(1), hello_of(Purpose::link_tcp, 3, 5));
  Handshake listener = Handshake::listener(secret_of(1), 5, nonce_of(2));
  EXPECT_TRUE(run(dialer, listener, honestly).ok());
  EXPECT_TRUE(dialer.done());
  EXPECT_TRUE(listener.done());
  EXPECT_EQ(listener.hello(), hello_of(Purpose::link_tcp, 3, 5));
  EXPECT_TRUE(dialer.take_output().empty());
  EXPECT_TRUE(listener.take_output().empty());
}

TEST(Handshake, AnyBitChangedOnTheWayIsRefused) {
  std::size_t bits = 0;
  for (int changed = 0; changed < 4; ++changed)
    for (std::size_t bit = 0;; ++bit, ++bits) {
      Handshake dialer = Handshake::dialer(secret_of(1), hello_of(Purpose::tree, 3, 5));
      Handshake listener = Handshake::listener(secret_of(1), 5, nonce_of(2));
      bool beyond = false;
      const Status status = run(dialer, listener, [&](int step, Bytes& bytes) {
        if (step != changed) return;
        beyond = bit >= bytes.size() * 8;
        if (!beyond) bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      });
      if (beyond) break;
      EXPECT_EQ(status.code(), Code::refused) << "message " << changed << " bit " << bit;
    }
  EXPECT_EQ(bits, (kHelloBytes + sizeof(Nonce) + 2 * sizeof(Proof)) * 8);
}

TEST(Handshake, DifferentSecretsAreRefusedByTheListenerBeforeItProvesAnything) {
  Handshake dialer = Handshake::dialer(secret_of(1), hello_of(Purpose::join, 3, 0));
  Handshake listener = Handshake::listener(secret_of(2), 0, nonce_of(2));
  EXPECT_EQ(run(dialer, listener, honestly).code(), Code::refused);
  EXPECT_TRUE(listener.take_output().empty());
}

TEST(Handshake, AListenerWithoutTheSecretIsRefused) {
  Handshake dialer = Handshake::dialer(secret_of(1), hello_of(Purpose::join, 3, 0));
  dialer.take_output();
  ASSERT_TRUE(dialer.feed(nonce_of(2)).ok());
  EXPECT_EQ(dialer.feed(Bytes(sizeof(Proof))).code(), Code::refused);
}

// The dialer's own proof sent back is not the listener's.
TEST(Handshake, AReflectedProofIsRefused) {
  Handshake dialer = Handshake::dialer(secret_of(1), hello_of(Purpose::join, 3, 0));
  dialer.take_output();
  ASSERT_TRUE(dialer.feed(nonce_of(2)).ok());
  EXPECT_EQ(dialer.feed(dialer.take_output()).code(), Code::refused);
}

// What one listener accepted is worth nothing at another, whose nonce differs.
TEST(Handshake, AReplayedProofIsRefused) {
  Handshake dialer = Handshake::dialer(secret_of(1), hello_of(Purpose::join, 3, 0));
  Handshake first = Handshake::listener(secret_of(1), 0, nonce_of(2));
  std::array<Bytes, 4> said;
  ASSERT_TRUE(run(dialer, first, [&](int step, Bytes& bytes) { said[static_cast<std::size_t>(step)] = bytes; }).ok());
  Handshake second = Handshake::listener(secret_of(1), 0, nonce_of(3));
  ASSERT_TRUE(second.feed(said[0]).ok());
  EXPECT_EQ(second.feed(said[2]).code(), Code::refused);
}

TEST(Handshake, AnotherRankThanTheOneSoughtRefuses) {
  Handshake listener = Handshake::listener(secret_of(1), 4, nonce_of(2));
  EXPECT_EQ(listener.feed(encode(hello_of(Purpose::tree, 3, 5))).code(), Code::refused);
  EXPECT_TRUE(listener.take_output().empty());
}

TEST(Handshake, AnotherVersionIsNamed) {
  auto hello = encode(hello_of(Purpose::tree, 3, 5));
  hello[8] = std::byte{77};
  Handshake listener = Handshake::listener(secret_of(1), 5, nonce_of(2));
  const Status status = listener.feed(hello);
  EXPECT_NE(status.text().find("version 77"), std::string::npos) << status.text();
}

// RFC 4231, test case 2.
TEST(Secrets, HmacAgreesWithThePublishedCase) {
  const std::string key = "Jefe";
  const std::string text = "what do ya want for nothing?";
  EXPECT_EQ(hex(hmac_sha256(std::as_bytes(std::span(key)), std::as_bytes(std::span(text)))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace sluice
