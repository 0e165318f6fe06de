#include "comm/bootstrap/handshake.h"

#include <algorithm>

#include "base/assert.h"
#include "comm/bootstrap/bytes.h"

namespace sluice {
namespace {

constexpr std::string_view kDialer = "sluice bootstrap 1 dialer";
constexpr std::string_view kListener = "sluice bootstrap 1 listener";

}  // namespace

Handshake Handshake::dialer(const Secret& secret, const Hello& hello) {
  Handshake shake(secret, Stage::nonce);
  shake.hello_ = hello;
  shake.send(encode(hello));
  return shake;
}

Handshake Handshake::listener(const Secret& secret, Rank self, const Nonce& nonce) {
  Handshake shake(secret, Stage::hello);
  shake.self_ = self;
  shake.listener_nonce_ = nonce;
  return shake;
}

std::size_t Handshake::wanted() const {
  switch (stage_) {
    case Stage::hello: return kHelloBytes;
    case Stage::nonce: return sizeof(Nonce);
    case Stage::dialer_proof:
    case Stage::listener_proof: return sizeof(Proof);
    case Stage::done: return 0;
  }
  return 0;
}

Status Handshake::feed(std::span<const std::byte> bytes) {
  SLUICE_ASSERT(bytes.size() == wanted(), "a handshake is fed what it wants");
  switch (stage_) {
    case Stage::hello: return take_hello(bytes);
    case Stage::nonce: take_nonce(bytes); return {};
    case Stage::dialer_proof:
      SLUICE_TRY(take_proof(bytes, kDialer));
      send(prove(kListener));
      return {};
    case Stage::listener_proof: return take_proof(bytes, kListener);
    case Stage::done: return {};
  }
  return {};
}

Bytes Handshake::take_output() { return std::exchange(output_, {}); }

Status Handshake::take_hello(std::span<const std::byte> bytes) {
  SLUICE_TRY_ASSIGN(hello_, decode_hello(bytes));
  if (hello_.to != self_)
    return {Code::refused,
            "it asks for rank " + std::to_string(hello_.to) + ", but this is rank " + std::to_string(self_)};
  greeted_ = true;
  send(listener_nonce_);
  stage_ = Stage::dialer_proof;
  return {};
}

void Handshake::take_nonce(std::span<const std::byte> bytes) {
  std::copy(bytes.begin(), bytes.end(), listener_nonce_.begin());
  send(prove(kDialer));
  proof_sent_ = true;
  stage_ = Stage::listener_proof;
}

Status Handshake::take_proof(std::span<const std::byte> bytes, std::string_view role) {
  Proof given{};
  std::copy(bytes.begin(), bytes.end(), given.begin());
  if (!equal_in_constant_time(given, prove(role))) return {Code::refused, "it does not know the secret of this job"};
  stage_ = Stage::done;
  return {};
}

Proof Handshake::prove(std::string_view role) const {
  ByteWriter said;
  said.text(role);
  said.bytes(encode(hello_));
  said.bytes(listener_nonce_);
  return hmac_sha256(secret_, std::move(said).take());
}

void Handshake::send(std::span<const std::byte> bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }

}  // namespace sluice
