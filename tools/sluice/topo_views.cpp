#include "tools/sluice/topo_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::tools {
namespace {

using Json = nlohmann::ordered_json;

// Bytes to three digits: "33.5G" would be wrong for memory, whose units are binary.
std::string about(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  return value < 100 && value != std::floor(value) ? fmt::format("{:.1f} {}", value, kUnits[unit])
                                                   : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

void add_lines(const TopologyNode& node, const std::string& indent, const std::string& branch, std::string& out) {
  out += indent + branch + caption(node) + "\n";
  std::string inner = indent;
  if (!branch.empty()) inner += branch == "├─ " ? "│  " : "   ";
  for (const TopologyNode& child : node.children)
    add_lines(child, inner, &child == &node.children.back() ? "└─ " : "├─ ", out);
}

// ---- the drawing

constexpr double kCharacter = 6.6;
constexpr double kLine = 22;
constexpr double kGap = 8;
constexpr std::size_t kRow = 8;  // boxes beside one another

struct Box {
  const TopologyNode* node = nullptr;
  double x = 0, y = 0, width = 0, height = 0;  // relative to the parent's corner
  std::vector<Box> children;
};

// Children stand in rows of kRow; leaves of one kind, threads above all, make the bulk.
Box layout(const TopologyNode& node) {
  Box box;
  box.node = &node;
  box.width = static_cast<double>(caption(node).size()) * kCharacter + 2 * kGap;
  double x = kGap;
  double y = kLine + kGap;
  double row_height = 0;
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    if (i > 0 && i % kRow == 0) {
      x = kGap;
      y += row_height + kGap;
      row_height = 0;
    }
    Box child = layout(node.children[i]);
    child.x = x;
    child.y = y;
    x += child.width + kGap;
    row_height = std::max(row_height, child.height);
    box.width = std::max(box.width, x);
    box.children.push_back(std::move(child));
  }
  box.height = node.children.empty() ? kLine + kGap : y + row_height + kGap;
  return box;
}

const char* colour(NodeKind kind) {
  switch (kind) {
    case NodeKind::machine: return "#ffffff";
    case NodeKind::package:
    case NodeKind::die:
    case NodeKind::group: return "#e8eef7";
    case NodeKind::numa: return "#f7e8d8";
    case NodeKind::cache: return "#f2f2f2";
    case NodeKind::core: return "#d8e8d8";
    case NodeKind::thread: return "#ffffff";
    case NodeKind::interface: return "#fff2b8";
    case NodeKind::gpu: return "#d8f2c8";
    default: return "#eeeeee";
  }
}

std::string escaped(const std::string& text) {
  std::string result;
  for (const char one : text) {
    if (one == '&')
      result += "&amp;";
    else if (one == '<')
      result += "&lt;";
    else if (one == '>')
      result += "&gt;";
    else if (one == '"')
      result += "&quot;";
    else
      result += one;
  }
  return result;
}

void draw(const Box& box, double x, double y, std::string& out) {
  out += fmt::format(
      "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" rx=\"3\" fill=\"{}\" stroke=\"#444\"/>\n", x,
      y, box.width, box.height, colour(box.node->kind));
  out += fmt::format("<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n", x + kGap, y + kLine - kGap / 2,
                     escaped(caption(*box.node)));
  for (const Box& child : box.children) draw(child, x + child.x, y + child.y, out);
}

Json node_json(const TopologyNode& node) {
  Json json = {{"kind", std::string(name(node.kind))}, {"index", node.index}};
  if (!node.name.empty()) json["name"] = node.name;
  if (!node.address.empty()) json["address"] = node.address;
  if (node.level != 0) json["level"] = node.level;
  if (node.os >= 0) json["os"] = node.os;
  if (node.bytes != 0) json["bytes"] = node.bytes;
  if (node.bytes_per_second != 0) json["bytes_per_second"] = node.bytes_per_second;
  if (!node.children.empty()) {
    json["children"] = Json::array();
    for (const TopologyNode& child : node.children) json["children"].push_back(node_json(child));
  }
  return json;
}

}  // namespace

std::string caption(const TopologyNode& node) {
  std::string text = node.kind == NodeKind::cache ? fmt::format("L{} cache", node.level)
                                                  : fmt::format("{} {}", name(node.kind), node.index);
  if (!node.name.empty()) text += " " + node.name;
  if (!node.address.empty()) text += " " + node.address;
  if (node.bytes != 0) text += " " + about(node.bytes);
  if (node.bytes_per_second != 0) text += fmt::format(" {:.3g} GB/s", static_cast<double>(node.bytes_per_second) / 1e9);
  if (node.kind == NodeKind::thread && node.os >= 0) text += fmt::format(" (cpu {})", node.os);
  return text;
}

std::string tree_view(const Topology& topology) {
  std::string out;
  add_lines(topology.root, "", "", out);
  return out;
}

Json json_view(const Topology& topology) { return node_json(topology.root); }

std::string svg_view(const Topology& topology) {
  const Box box = layout(topology.root);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"monospace\" font-size=\"11\">\n",
      box.width + 2 * kGap, box.height + 2 * kGap);
  draw(box, kGap, kGap, out);
  return out + "</svg>\n";
}

}  // namespace sluice::tools
