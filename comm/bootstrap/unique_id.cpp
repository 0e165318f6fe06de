#include "comm/bootstrap/unique_id.h"

#include <algorithm>

#include "comm/bootstrap/bytes.h"
#include "comm/bootstrap/secrets.h"

namespace sluice {
namespace {

constexpr std::uint32_t kMagic = 0x44494c53;  // "SLID"
constexpr std::uint8_t kVersion = 1;

Status check(const Rendezvous& rendezvous) {
  if (rendezvous.addresses.size() > kRootAddressesMax)
    return {Code::invalid_argument, "a unique id holds at most " + std::to_string(kRootAddressesMax) +
                                        " addresses, not " + std::to_string(rendezvous.addresses.size())};
  if (rendezvous.ports < 1 || rendezvous.ports > kRootPortsMax || rendezvous.port + rendezvous.ports > 65536)
    return {Code::invalid_argument, "a unique id can't name " + std::to_string(rendezvous.ports) + " ports from " +
                                        std::to_string(rendezvous.port) + " on"};
  if (!rendezvous.addresses.empty() && rendezvous.port == 0)
    return {Code::invalid_argument, "a unique id with an address needs a port"};
  return {};
}

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

Result<UniqueId> to_unique_id(const Rendezvous& rendezvous) {
  SLUICE_TRY(check(rendezvous));
  ByteWriter out;
  out.number(kMagic);
  out.number(kVersion);
  out.number(static_cast<std::uint8_t>(rendezvous.addresses.size()));
  out.number(rendezvous.port);
  out.number(static_cast<std::uint16_t>(rendezvous.ports));
  out.zeros(2);
  out.number(rendezvous.host_id);
  out.bytes(rendezvous.secret);
  for (const std::uint32_t address : rendezvous.addresses) out.number(address);
  const auto written = std::move(out).take();
  UniqueId id{};
  std::copy(written.begin(), written.end(), id.begin());
  return id;
}

Result<Rendezvous> to_rendezvous(const UniqueId& id) {
  ByteReader in(id);
  const bool ours = in.number<std::uint32_t>() == kMagic;
  const auto version = in.number<std::uint8_t>();
  const auto addresses = in.number<std::uint8_t>();
  if (!ours) return Error{Code::invalid_argument, "this is not a unique id of Sluice (its first bytes are wrong)"};
  if (version != kVersion)
    return Error{Code::invalid_argument, "the unique id is of version " + std::to_string(version) +
                                             ", but this build knows " + std::to_string(kVersion) +
                                             ": use one build of Sluice for all ranks"};
  Rendezvous rendezvous;
  rendezvous.port = in.number<std::uint16_t>();
  rendezvous.ports = in.number<std::uint16_t>();
  in.bytes(2);
  rendezvous.host_id = in.number<std::uint64_t>();
  in.copy_to(rendezvous.secret);
  if (addresses > kRootAddressesMax)
    return Error{Code::invalid_argument, "the unique id is damaged: too many addresses"};
  for (int i = 0; i < addresses; ++i) rendezvous.addresses.push_back(in.number<std::uint32_t>());
  const auto rest = in.bytes(in.left());
  if (std::any_of(rest.begin(), rest.end(), [](std::byte one) { return one != std::byte{0}; }))
    return Error{Code::invalid_argument, "the unique id is damaged: its tail is not zero"};
  SLUICE_TRY(check(rendezvous));
  return rendezvous;
}

Result<UniqueId> make_local_unique_id() {
  Rendezvous rendezvous;
  SLUICE_TRY(fill_random(rendezvous.secret));
  return to_unique_id(rendezvous);
}

std::string to_hex(const UniqueId& id) { return hex(id); }

Result<UniqueId> unique_id_from_hex(std::string_view hex) {
  UniqueId id{};
  if (hex.size() != id.size() * 2)
    return Error{Code::invalid_argument, "a unique id is " + std::to_string(id.size() * 2) +
                                             " hexadecimal digits, not " + std::to_string(hex.size()) + " characters"};
  for (std::size_t i = 0; i < id.size(); ++i) {
    const int high = hex_digit(hex[2 * i]);
    const int low = hex_digit(hex[2 * i + 1]);
    if (high < 0 || low < 0)
      return Error{Code::invalid_argument,
                   "a unique id is written in hexadecimal digits; byte " + std::to_string(i) + " is not"};
    id[i] = static_cast<std::byte>(high * 16 + low);
  }
  return id;
}

}  // namespace sluice
