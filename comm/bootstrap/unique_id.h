// UniqueId: 128 bytes that every rank of a job must know to join it: where the root (rank 0) can be reached, and a secret.
// The secret is proved (HMAC-SHA256 over both sides' nonces), never sent.
//
//   Layout   4 magic "SLID", 1 version, 1 count of addresses, 2 first port, 2 count of ports, 2 zero, 8 host id of the root,
//            32 secret, 8 x 4 IPv4 addresses, rest zero; numbers little-endian.
//   Places   ranks on the root's host use an abstract Unix socket whose name is derived from the secret. Others try
//            each address with each port. No address at all: a job of one host, which needs no network.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

using UniqueId = std::array<std::byte, 128>;
using Secret = std::array<std::byte, 32>;

inline constexpr std::size_t kRootAddressesMax = 8;
inline constexpr int kRootPortsMax = 64;

// What a UniqueId says. Anybody who has a secret to share can make one: rank 0 listens there when it joins.
struct Rendezvous {
  std::vector<std::uint32_t> addresses;  // of the root, IPv4, host order; empty: only ranks on its host can join
  std::uint16_t port = 0;                // the root listens on the first free one of port .. port + ports - 1
  int ports = 1;                         // 1 .. kRootPortsMax
  std::uint64_t host_id = 0;             // of the root (PeerInfo::host_id); 0: not known when the id was made
  Secret secret{};
  bool operator==(const Rendezvous&) const = default;
};

// Errors: invalid_argument names the field that is out of its bounds.
Result<UniqueId> to_unique_id(const Rendezvous& rendezvous);
Result<Rendezvous> to_rendezvous(const UniqueId& id);

// For ranks on this host: a fresh secret and no address. Nothing listens until rank 0 joins, in whatever process.
Result<UniqueId> make_local_unique_id();

std::string to_hex(const UniqueId& id);
Result<UniqueId> unique_id_from_hex(std::string_view hex);

}  // namespace sluice
