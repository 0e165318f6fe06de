// Mutual proof of the secret over any stream, as a state machine that sees only bytes.
//
//   dialer -> listener   Hello {purpose, from, to, nonce}
//   listener -> dialer   nonce                               all that a stranger ever gets
//   dialer -> listener   HMAC(secret, "dialer", Hello, listener's nonce)
//   listener -> dialer   HMAC(secret, "listener", Hello, listener's nonce)
//
//   Proves    that both know the secret now (fresh nonces), in these roles, for this purpose and these two ranks: a proof
//             can't be used in another role, for another purpose, again, or towards another rank.
//   Doesn't   hide or sign what is said afterwards: a network that alters traffic in flight needs a tunnel below.
//   Sizes     fixed, so a reader takes exactly wanted() bytes and leaves what follows in the socket.
//   Source    challenge-response with a keyed hash as in ISO/IEC 9798-4 (mutual, three passes after the greeting);
//             HMAC: RFC 2104.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"
#include "comm/bootstrap/messages.h"

namespace sluice {

class Handshake {
 public:
  // The nonces are fresh random bytes. The dialer's greeting is in output() at once.
  static Handshake dialer(const Secret& secret, const Hello& hello);
  static Handshake listener(const Secret& secret, Rank self, const Nonce& nonce);

  bool done() const { return stage_ == Stage::done; }
  // The dialer has sent its proof: a stream that ends now was most likely refused for it.
  bool proof_sent() const { return proof_sent_; }
  // The listener has been greeted, so hello() says by whom (not yet proved).
  bool greeted() const { return greeted_; }
  const Hello& hello() const { return hello_; }

  std::size_t wanted() const;  // bytes that feed() takes next; 0 when done
  // `bytes` are exactly wanted(). Errors: refused with what was wrong; then the stream must be closed, without a word.
  Status feed(std::span<const std::byte> bytes);
  // What is to be sent, each byte once.
  Bytes take_output();

 private:
  enum class Stage : std::uint8_t { hello, nonce, dialer_proof, listener_proof, done };  // what is read next

  Handshake(const Secret& secret, Stage stage) : secret_(secret), stage_(stage) {}
  Status take_hello(std::span<const std::byte> bytes);
  void take_nonce(std::span<const std::byte> bytes);
  Status take_proof(std::span<const std::byte> bytes, std::string_view role);
  Proof prove(std::string_view role) const;
  void send(std::span<const std::byte> bytes);

  Secret secret_;
  Stage stage_;
  Rank self_ = 0;
  Hello hello_;
  Nonce listener_nonce_{};
  bool proof_sent_ = false;
  bool greeted_ = false;
  Bytes output_;
};

}  // namespace sluice
