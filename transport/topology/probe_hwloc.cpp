#include "transport/topology/probe.h"

#include <arpa/inet.h>
#include <hwloc.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <fstream>
#include <memory>

namespace sluice {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

std::optional<NodeKind> device_kind(const hwloc_obj& object) {
  switch (object.attr->osdev.type) {
    case HWLOC_OBJ_OSDEV_NETWORK:
    case HWLOC_OBJ_OSDEV_OPENFABRICS: return NodeKind::interface;
    case HWLOC_OBJ_OSDEV_GPU:
    case HWLOC_OBJ_OSDEV_COPROC: return NodeKind::gpu;
    case HWLOC_OBJ_OSDEV_BLOCK: return NodeKind::storage;
    default: return std::nullopt;
  }
}

// nullopt: the object itself is left out, its children move up.
std::optional<NodeKind> kind_of(const hwloc_obj& object) {
  if (hwloc_obj_type_is_cache(object.type) != 0) return NodeKind::cache;
  switch (object.type) {
    case HWLOC_OBJ_MACHINE: return NodeKind::machine;
    case HWLOC_OBJ_PACKAGE: return NodeKind::package;
    case HWLOC_OBJ_DIE: return NodeKind::die;
    case HWLOC_OBJ_GROUP: return NodeKind::group;
    case HWLOC_OBJ_NUMANODE: return NodeKind::numa;
    case HWLOC_OBJ_CORE: return NodeKind::core;
    case HWLOC_OBJ_PU: return NodeKind::thread;
    case HWLOC_OBJ_BRIDGE: return NodeKind::bridge;
    case HWLOC_OBJ_PCI_DEVICE: return NodeKind::pci;
    case HWLOC_OBJ_OS_DEVICE: return device_kind(object);
    default: return std::nullopt;
  }
}

std::string info(hwloc_obj* object, const char* key) {
  const char* value = hwloc_obj_get_info_by_name(object, key);
  return value == nullptr ? std::string() : std::string(value);
}

std::string pci_address(const hwloc_obj& object) {
  const auto& pci = object.attr->pcidev;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04x:%02x:%02x.%01x", pci.domain, pci.bus, pci.dev, pci.func);
  return text.data();
}

void describe(hwloc_obj* object, TopologyNode& node) {
  if (object->name != nullptr) node.name = object->name;
  switch (node.kind) {
    case NodeKind::machine: node.bytes = object->total_memory; break;
    case NodeKind::package: node.name = info(object, "CPUModel"); break;
    case NodeKind::numa:
      node.bytes = object->attr->numanode.local_memory;
      node.os = static_cast<int>(object->os_index);
      break;
    case NodeKind::cache:
      node.bytes = object->attr->cache.size;
      node.level = static_cast<int>(object->attr->cache.depth);
      break;
    case NodeKind::thread: node.os = static_cast<int>(object->os_index); break;
    case NodeKind::pci: {
      node.address = pci_address(*object);
      const std::string vendor = info(object, "PCIVendor");
      node.name = vendor + (vendor.empty() ? "" : " ") + info(object, "PCIDevice");
      node.bytes_per_second = static_cast<std::uint64_t>(static_cast<double>(object->attr->pcidev.linkspeed) * 1e9);
      break;
    }
    default: break;
  }
}

using Indices = std::array<int, kNodeKinds>;

void add_children(hwloc_obj* object, TopologyNode& parent, Indices& next);

void add(hwloc_obj* object, TopologyNode& parent, Indices& next) {
  const auto kind = kind_of(*object);
  if (!kind) return add_children(object, parent, next);
  TopologyNode node;
  node.kind = *kind;
  node.index = next.at(static_cast<std::size_t>(*kind))++;
  describe(object, node);
  add_children(object, node, next);
  parent.children.push_back(std::move(node));
}

void add_children(hwloc_obj* object, TopologyNode& parent, Indices& next) {
  for (hwloc_obj* child : {object->memory_first_child, object->first_child, object->io_first_child})
    for (; child != nullptr; child = child->next_sibling) add(child, parent, next);
}

Result<Topology> convert(hwloc_topology* loaded, Indices& next) {
  Topology topology;
  hwloc_obj* root = hwloc_get_root_obj(loaded);
  next[static_cast<std::size_t>(NodeKind::machine)] = 1;
  describe(root, topology.root);
  add_children(root, topology.root, next);
  return topology;
}

Result<HwlocTopology> initialized() {
  hwloc_topology* made = nullptr;
  if (hwloc_topology_init(&made) != 0) return system_error("hwloc_topology_init", errno);
  // Displays and OpenCL platforms say nothing about links; PCI devices are found in sysfs without libpciaccess, which
  // leaks memory at every probe.
  for (const char* component : {"gl", "opencl", "pci"})
    hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  return HwlocTopology(made);
}

TopologyNode* find(TopologyNode& node, NodeKind kind, std::string_view wanted) {
  if (node.kind == kind && node.name == wanted) return &node;
  for (TopologyNode& child : node.children)
    if (TopologyNode* found = find(child, kind, wanted); found != nullptr) return found;
  return nullptr;
}

std::string address_of(const ifaddrs& one) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const auto* address = reinterpret_cast<const sockaddr_in*>(one.ifa_addr);
  const auto* mask = reinterpret_cast<const sockaddr_in*>(one.ifa_netmask);
  if (inet_ntop(AF_INET, &address->sin_addr, text.data(), text.size()) == nullptr) return {};
  const int prefix = mask == nullptr ? 32 : std::popcount(mask->sin_addr.s_addr);
  return std::string(text.data()) + "/" + std::to_string(prefix);
}

// What the driver says, in megabits; 0 where it says nothing.
std::uint64_t interface_speed(const std::string& interface) {
  std::ifstream file("/sys/class/net/" + interface + "/speed");
  std::int64_t megabits = 0;
  return file >> megabits && megabits > 0 ? static_cast<std::uint64_t>(megabits) * 125'000 : 0;
}

// Interfaces with an IPv4 address: those that hwloc saw on a PCI device get theirs, the others hang at the machine.
Status add_interfaces(Topology& topology, int& next_index) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return system_error("getifaddrs", errno);
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owner(list, freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || (one->ifa_flags & IFF_UP) == 0) continue;
    TopologyNode* node = find(topology.root, NodeKind::interface, one->ifa_name);
    if (node == nullptr) {
      TopologyNode& made = topology.root.children.emplace_back();
      made.kind = NodeKind::interface;
      made.index = next_index++;
      made.name = one->ifa_name;
      node = &made;
    }
    node->address = address_of(*one);
    node->bytes_per_second = interface_speed(one->ifa_name);
  }
  return {};
}

}  // namespace

Result<Topology> probe_topology() {
  SLUICE_TRY_ASSIGN(const HwlocTopology hwloc, initialized());
  hwloc_topology_set_io_types_filter(hwloc.get(), HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(hwloc.get()) != 0) return system_error("hwloc_topology_load", errno);
  Indices next{};
  SLUICE_TRY_ASSIGN(Topology topology, convert(hwloc.get(), next));
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) topology.root.name = host.data();
  SLUICE_TRY(add_interfaces(topology, next[static_cast<std::size_t>(NodeKind::interface)]));
  return topology;
}

Result<Topology> synthetic_topology(const std::string& description) {
  SLUICE_TRY_ASSIGN(const HwlocTopology hwloc, initialized());
  if (hwloc_topology_set_synthetic(hwloc.get(), description.c_str()) != 0)
    return Error{Code::invalid_argument,
                 "'" + description + "' is no machine in hwloc's words (package:2 core:4 pu:2)"};
  if (hwloc_topology_load(hwloc.get()) != 0) return system_error("hwloc_topology_load", errno);
  Indices next{};
  return convert(hwloc.get(), next);
}

}  // namespace sluice
