#include "comm/bootstrap/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <climits>
#include <memory>
#include <optional>

#include "comm/bootstrap/unique_id.h"

namespace sluice {
namespace {

std::optional<std::uint32_t> parse_dotted(std::string_view text) {
  in_addr address{};
  if (::inet_pton(AF_INET, std::string(text).c_str(), &address) != 1) return std::nullopt;
  return ntohl(address.s_addr);
}

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::uint32_t mask_of(int prefix) { return prefix == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix); }

std::string listed(std::span<const InterfaceAddress> interfaces) {
  std::string text;
  for (const InterfaceAddress& one : interfaces)
    text +=
        (text.empty() ? "" : ", ") + one.name + " " + format_address(one.address) + "/" + std::to_string(one.prefix);
  return text.empty() ? "none has an IPv4 address" : text;
}

// Many containers and fresh machines do not list their own name in /etc/hosts.
bool is_own_name(const std::string& host) {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && host == name.data();
}

bool is_container_bridge(std::string_view interface) {
  constexpr std::array<std::string_view, 7> kBridges{"docker", "br-", "veth", "virbr", "cni", "lxc", "podman"};
  return std::any_of(kBridges.begin(), kBridges.end(),
                     [&](std::string_view one) { return interface.starts_with(one); });
}

}  // namespace

Result<std::vector<InterfaceAddress>> list_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return system_error("can't list the network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<InterfaceAddress> result;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    const auto ipv4 = [](const sockaddr* address) {
      return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    };
    const int prefix = one->ifa_netmask == nullptr ? 32 : std::popcount(ipv4(one->ifa_netmask));
    result.push_back({one->ifa_name, ipv4(one->ifa_addr), prefix, (one->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return result;
}

Result<std::uint32_t> choose_address(std::string_view setting, std::span<const InterfaceAddress> interfaces) {
  std::uint32_t network = 0;
  std::uint32_t mask = 0;
  bool by_subnet = false;
  if (const auto slash = setting.find('/'); slash != std::string_view::npos) {
    const auto address = parse_dotted(setting.substr(0, slash));
    const auto prefix = parse_number<int>(setting.substr(slash + 1));
    if (!address || !prefix || *prefix < 0 || *prefix > 32)
      return Error{Code::invalid_argument,
                   "setting interface is '" + std::string(setting) +
                       "', but must be the name of an interface or a subnet such as 10.0.0.0/8"};
    by_subnet = true;
    mask = mask_of(*prefix);
    network = *address & mask;
  }
  for (const InterfaceAddress& one : interfaces)
    if (by_subnet ? (one.address & mask) == network : one.name == setting) return one.address;
  return Error{Code::invalid_argument, "setting interface is '" + std::string(setting) +
                                           "', but this host has no such " + (by_subnet ? "subnet" : "interface") +
                                           " that is up; it has: " + listed(interfaces)};
}

std::vector<std::uint32_t> root_addresses(std::span<const InterfaceAddress> interfaces) {
  std::vector<std::uint32_t> result;
  for (const bool bridges : {false, true})
    for (const InterfaceAddress& one : interfaces)
      if (!one.loopback && is_container_bridge(one.name) == bridges && result.size() < kRootAddressesMax)
        result.push_back(one.address);
  if (result.empty()) result.push_back(kLoopbackAddress);
  return result;
}

Result<PortRange> parse_port_range(std::string_view setting) {
  if (setting.empty()) return PortRange{};
  const auto dash = setting.find('-');
  const auto first = parse_number<std::uint16_t>(setting.substr(0, dash));
  const auto last =
      dash == std::string_view::npos ? std::nullopt : parse_number<std::uint16_t>(setting.substr(dash + 1));
  if (!first || !last || *first == 0 || *first > *last)
    return Error{Code::invalid_argument, "setting port_range is '" + std::string(setting) +
                                             "', but must be FIRST-LAST with 1 <= FIRST <= LAST <= 65535"};
  return PortRange{*first, *last};
}

Result<std::uint32_t> resolve(const std::string& host) {
  if (const auto dotted = parse_dotted(host)) return *dotted;
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &first);
  if (failed != 0 && is_own_name(host)) {
    SLUICE_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, list_interfaces());
    return root_addresses(interfaces).front();
  }
  if (failed != 0)
    return Error{Code::invalid_argument, "host '" + host + "' has no IPv4 address: " + ::gai_strerror(failed)};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(first, &::freeaddrinfo);
  return ntohl(reinterpret_cast<const sockaddr_in*>(first->ai_addr)->sin_addr.s_addr);
}

std::string format_address(std::uint32_t address) {
  return std::to_string(address >> 24) + "." + std::to_string((address >> 16) & 255) + "." +
         std::to_string((address >> 8) & 255) + "." + std::to_string(address & 255);
}

std::string format_endpoint(std::uint32_t address, std::uint16_t port) {
  return format_address(address) + ":" + std::to_string(port);
}

}  // namespace sluice
