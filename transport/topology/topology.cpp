#include "transport/topology/topology.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace sluice {
namespace {

constexpr std::string_view kHeader = "sluice topology 1";
constexpr std::array<std::string_view, kNodeKinds> kKinds{"machine",   "package", "die",    "group",  "numa",
                                                          "cache",     "core",    "thread", "bridge", "pci",
                                                          "interface", "gpu",     "storage"};

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\') result += '\\';
    result += one == '\n' ? ' ' : one;
  }
  return result + "\"";
}

void print_node(const TopologyNode& node, int depth, std::string& out) {
  out.append(static_cast<std::size_t>(2 * depth), ' ');
  out += std::string(name(node.kind)) + " " + std::to_string(node.index);
  if (!node.name.empty()) out += " name " + quoted(node.name);
  if (!node.address.empty()) out += " address " + quoted(node.address);
  if (node.level != 0) out += " level " + std::to_string(node.level);
  if (node.os >= 0) out += " os " + std::to_string(node.os);
  if (node.bytes != 0) out += " bytes " + std::to_string(node.bytes);
  if (node.bytes_per_second != 0) out += " bytes_per_second " + std::to_string(node.bytes_per_second);
  out += "\n";
  for (const TopologyNode& child : node.children) print_node(child, depth + 1, out);
}

std::size_t count_in(const TopologyNode& node, NodeKind kind) {
  std::size_t found = node.kind == kind ? 1 : 0;
  for (const TopologyNode& child : node.children) found += count_in(child, kind);
  return found;
}

// Reads one line, word by word.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  // Leading blanks, in levels of two; nullopt: an odd number.
  std::optional<int> depth() {
    std::size_t blanks = 0;
    while (blanks < rest_.size() && rest_[blanks] == ' ') ++blanks;
    rest_.remove_prefix(blanks);
    return blanks % 2 == 0 ? std::optional(static_cast<int>(blanks / 2)) : std::nullopt;
  }

  std::optional<std::string> word() {
    if (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    if (rest_.empty()) return std::nullopt;
    if (rest_.front() == '"') return quoted_word();
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(found.size());
    return std::string(found);
  }

 private:
  std::optional<std::string> quoted_word() {
    std::string text;
    for (std::size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') {
        rest_.remove_prefix(i + 1);
        return text;
      }
      if (rest_[i] == '\\' && i + 1 < rest_.size()) ++i;
      text += rest_[i];
    }
    return std::nullopt;  // no closing quote
  }

  std::string_view rest_;
};

template <typename Number>
bool read_number(const std::string& word, Number& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() && value >= 0;
}

bool set_field(TopologyNode& node, const std::string& field, const std::string& value) {
  if (field == "name") return node.name = value, true;
  if (field == "address") return node.address = value, true;
  if (field == "level") return read_number(value, node.level);
  if (field == "os") return read_number(value, node.os);
  if (field == "bytes") return read_number(value, node.bytes);
  if (field == "bytes_per_second") return read_number(value, node.bytes_per_second);
  return false;
}

Error bad_line(int number, const std::string& what) {
  return {Code::invalid_argument, "topology, line " + std::to_string(number) + ": " + what};
}

Result<TopologyNode> parse_node(LineReader& line, int number) {
  TopologyNode node;
  const std::string kind_word = line.word().value_or("");
  const auto kind = parse_node_kind(kind_word);
  if (!kind) return bad_line(number, "'" + kind_word + "' is no kind of node");
  node.kind = *kind;
  if (!read_number(line.word().value_or(""), node.index)) return bad_line(number, "an index must follow " + kind_word);
  while (const auto field = line.word()) {
    const auto value = line.word();
    if (!value || !set_field(node, *field, *value))
      return bad_line(number, "field '" + *field + "' is not known or its value is wrong");
  }
  return node;
}

}  // namespace

std::string_view name(NodeKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }

std::optional<NodeKind> parse_node_kind(std::string_view word) {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (kKinds[i] == word) return static_cast<NodeKind>(i);
  return std::nullopt;
}

std::size_t Topology::count(NodeKind kind) const { return count_in(root, kind); }

std::string print(const Topology& topology) {
  std::string out = std::string(kHeader) + "\n";
  print_node(topology.root, 0, out);
  return out;
}

Result<Topology> parse_topology(std::string_view text) {
  Topology topology;
  // The open node of each depth. Only its last child ever grows, so the pointers stay right.
  std::vector<TopologyNode*> open;
  std::size_t nodes = 0;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line_text = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line_text.size() + 1, text.size()));
    if (number == 1) {
      if (line_text != kHeader) return bad_line(1, "must be '" + std::string(kHeader) + "'");
      continue;
    }
    if (line_text.empty()) continue;
    LineReader line(line_text);
    const auto depth = line.depth();
    if (!depth || *depth > static_cast<int>(open.size()) || *depth >= kTopologyDepthMax || (*depth == 0 && nodes > 0))
      return bad_line(number,
                      "is indented wrongly: a child has two blanks more than its parent, and there is one root");
    if (++nodes > kTopologyNodesMax) return bad_line(number, "there are too many nodes");
    SLUICE_TRY_ASSIGN(TopologyNode node, parse_node(line, number));
    open.resize(static_cast<std::size_t>(*depth));
    if (*depth == 0) {
      topology.root = std::move(node);
      open.push_back(&topology.root);
    } else {
      open.back()->children.push_back(std::move(node));
      open.push_back(&open.back()->children.back());
    }
  }
  if (nodes == 0) return Error{Code::invalid_argument, "topology: the text has no machine in it"};
  return topology;
}

}  // namespace sluice
