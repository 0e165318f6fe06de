// What a machine is made of, as a value: probed (hwloc), printed, parsed, compared. Recorded machines are such texts.
//
//   Text     a header, then one node a line, children indented by two blanks:
//              sluice topology 1
//              machine 0 name "node7" bytes 67385012224
//                package 0 name "EPYC 7763"
//                  numa 0 bytes 33692506112
//                  cache 0 level 3 bytes 33554432
//                    core 0
//                      thread 0 os 4
//                interface 0 name "eth0" address "10.0.0.7/24" bytes_per_second 1250000000
//            parse_topology(print(t)) == t. Unknown kinds and fields are errors: a text is read by the release that wrote it.
//   Limits   kTopologyNodesMax nodes, kTopologyDepthMax levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

enum class NodeKind : std::uint8_t {
  machine,
  package,
  die,
  group,
  numa,  // memory that some cores are near to
  cache,
  core,
  thread,     // of a core; what the system calls a CPU
  bridge,     // between the processor and PCI devices
  pci,        // a PCI device
  interface,  // a network interface
  gpu,
  storage,
};
inline constexpr int kNodeKinds = 13;
std::string_view name(NodeKind kind);
std::optional<NodeKind> parse_node_kind(std::string_view word);

// 0 and empty: not known, or not meant for the kind.
struct TopologyNode {
  NodeKind kind = NodeKind::machine;
  int index = 0;                       // among its kind, from 0 on
  std::string name;                    // of a processor, a device
  std::string address;                 // "0000:3b:00.0" of PCI; "10.0.0.7/24" of an interface
  std::uint64_t bytes = 0;             // of memory or a cache
  std::uint64_t bytes_per_second = 0;  // of an interface or a PCI link
  int level = 0;                       // of a cache
  int os = -1;                         // the system's number of a thread or memory; -1: none
  std::vector<TopologyNode> children;
  bool operator==(const TopologyNode&) const = default;
};

struct Topology {
  TopologyNode root;
  bool operator==(const Topology&) const = default;

  std::size_t count(NodeKind kind) const;
};

inline constexpr std::size_t kTopologyNodesMax = 1 << 20;
inline constexpr int kTopologyDepthMax = 64;

std::string print(const Topology& topology);
// Errors: invalid_argument with line and what is wrong.
Result<Topology> parse_topology(std::string_view text);

}  // namespace sluice
