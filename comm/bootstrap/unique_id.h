// UniqueId: 128 bytes that every rank of a job must know to join it: the root's address and a secret.
// The secret is proved (HMAC-SHA256 over both sides' nonces), never sent.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

using UniqueId = std::array<std::byte, 128>;

std::string to_hex(const UniqueId& id);
Result<UniqueId> unique_id_from_hex(std::string_view hex);

}  // namespace sluice
