#include "transport/topology/probe.h"

namespace sluice {
namespace {

Error without_hwloc() {
  return {Code::unsupported, "this build has no hwloc: install libhwloc-dev and configure again with -Dhwloc=enabled"};
}

}  // namespace

Result<Topology> probe_topology() { return without_hwloc(); }
Result<Topology> synthetic_topology(const std::string&) { return without_hwloc(); }

}  // namespace sluice
