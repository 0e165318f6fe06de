// A topology for people (a tree), for programs (JSON) and as a drawing (SVG).
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "transport/topology/topology.h"

namespace sluice::tools {

std::string tree_view(const Topology& topology);
nlohmann::ordered_json json_view(const Topology& topology);
// Nested boxes, one document; width and height follow from the tree.
std::string svg_view(const Topology& topology);

// What a box or a line of the tree says of one node: "L3 cache 32M", "eth0 10.0.0.7/24".
std::string caption(const TopologyNode& node);

}  // namespace sluice::tools
