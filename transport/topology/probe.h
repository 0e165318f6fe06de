// Looks at this machine. Without hwloc the build has no probe: then every call is `unsupported`.
#pragma once

#include <string>

#include "base/result.h"
#include "transport/topology/topology.h"

namespace sluice {

// This machine as this process may use it: processors, caches, memory, PCI devices, and the network interfaces that are up.
// Takes tens of milliseconds. Errors: unsupported, system.
Result<Topology> probe_topology();

// A machine that does not exist, in hwloc's words ("package:2 numa:1 core:4 pu:2"); no devices.
Result<Topology> synthetic_topology(const std::string& description);

}  // namespace sluice
