// The few pieces of cryptography that joining needs, from libcrypto: random bytes, HMAC-SHA256, a comparison that takes
// as long whatever it finds.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {

using Nonce = std::array<std::byte, 32>;
using Proof = std::array<std::byte, 32>;

// Errors: system, when the machine gives no random bytes. Any thread.
Status fill_random(std::span<std::byte> to);

Proof hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message);
bool equal_in_constant_time(const Proof& a, const Proof& b);

// A secret for `purpose` drawn from text that all ranks know alike: as secret as that text.
Secret derive_secret(std::string_view text, std::string_view purpose);

// The name of the root's abstract Unix socket (without the leading zero byte); tells nothing about the secret.
std::string root_unix_name(const Secret& secret);

std::string hex(std::span<const std::byte> bytes);

}  // namespace sluice
