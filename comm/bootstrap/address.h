// Which IPv4 address and port this process listens on. Everything that decides is pure: it takes the list of interfaces.
//
//   By name or subnet   Setting::interface: "eth0" or "10.0.0.0/8". What matches nothing is an error that lists what exists.
//   By reachability     without it: the root names all its addresses, a joiner takes the one that answers, and listens on
//                       the address that its own end of that stream has. Ranks on the root's host get the address by which
//                       other hosts reached the root.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace sluice {

inline constexpr std::uint32_t kLoopbackAddress = 0x7f000001;  // 127.0.0.1
inline constexpr std::uint32_t kAnyAddress = 0;

struct InterfaceAddress {
  std::string name;
  std::uint32_t address = 0;  // IPv4, host order
  int prefix = 32;            // bits of the subnet
  bool loopback = false;
};

// Those that are up and have an IPv4 address. Errors: system.
Result<std::vector<InterfaceAddress>> list_interfaces();

// The address that Setting::interface asks for. Errors: invalid_argument lists the interfaces.
Result<std::uint32_t> choose_address(std::string_view setting, std::span<const InterfaceAddress> interfaces);

// Where a root may be reached, when nothing is said: every address that is not loopback, at most kRootAddressesMax; real
// networks before container bridges, which many hosts have under one address. None of them: loopback.
std::vector<std::uint32_t> root_addresses(std::span<const InterfaceAddress> interfaces);

struct PortRange {
  std::uint16_t first = 0;  // 0: any free port
  std::uint16_t last = 0;
};
// Of Setting::port_range: empty or FIRST-LAST. Errors: invalid_argument.
Result<PortRange> parse_port_range(std::string_view setting);

// IPv4 address of a host's name or of dotted text; this host's own name need not be known to the resolver. Blocks as long as
// the resolver. Errors: invalid_argument.
Result<std::uint32_t> resolve(const std::string& host);

inline bool is_loopback(std::uint32_t address) { return (address >> 24) == 127; }
std::string format_address(std::uint32_t address);
std::string format_endpoint(std::uint32_t address, std::uint16_t port);

}  // namespace sluice
