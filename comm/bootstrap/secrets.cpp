#include "comm/bootstrap/secrets.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/assert.h"

namespace sluice {

Status fill_random(std::span<std::byte> to) {
  while (!to.empty()) {
    const ssize_t got = ::getrandom(to.data(), to.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return system_error("the machine gives no random bytes (getrandom)", errno);
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Proof hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  Proof proof{};
  unsigned int length = 0;
  const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(message.data()), message.size(),
                          reinterpret_cast<unsigned char*>(proof.data()), &length);
  SLUICE_ASSERT(done != nullptr && length == proof.size(), "libcrypto computes HMAC-SHA256");
  return proof;
}

bool equal_in_constant_time(const Proof& a, const Proof& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

Secret derive_secret(std::string_view text, std::string_view purpose) {
  return hmac_sha256(std::as_bytes(std::span(text.data(), text.size())),
                     std::as_bytes(std::span(purpose.data(), purpose.size())));
}

std::string root_unix_name(const Secret& secret) {
  constexpr std::string_view kLabel = "sluice: name of the root's socket";
  const Proof name = hmac_sha256(secret, std::as_bytes(std::span(kLabel.data(), kLabel.size())));
  return "sluice-root-" + hex(std::span(name).first(16));
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte one : bytes) {
    text += kDigits[std::to_integer<std::size_t>(one >> 4)];
    text += kDigits[std::to_integer<std::size_t>(one & std::byte{15})];
  }
  return text;
}

}  // namespace sluice
