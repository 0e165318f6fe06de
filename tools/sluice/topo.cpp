#include <cstdio>
#include <fstream>
#include <sstream>

#include "tools/sluice/commands.h"
#include "tools/sluice/topo_views.h"
#include "transport/topology/probe.h"

namespace sluice::tools {
namespace {

Result<Topology> obtain(const TopoOptions& options) {
  if (options.from_file.empty()) return probe_topology();
  std::ifstream file(options.from_file);
  if (!file) return Error{Code::invalid_argument, "--file: '" + options.from_file + "' can't be read"};
  std::ostringstream text;
  text << file.rdbuf();
  return parse_topology(text.str());
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return {Code::system, "--svg: '" + path + "' can't be written"};
  return {};
}

}  // namespace

int topo_command(const TopoOptions& options) {
  const auto topology = obtain(options);
  if (!topology.ok()) {
    print_error("topo", topology.error());
    return topology.error().code == Code::invalid_argument ? kUsage : kFailed;
  }
  if (!options.svg_file.empty()) {
    if (const Status written = write_file(options.svg_file, svg_view(*topology)); !written.ok()) {
      print_error("topo", written.error());
      return kFailed;
    }
  }
  std::string text = tree_view(*topology);
  if (options.text) text = print(*topology);
  if (options.json) text = json_view(*topology).dump(1) + "\n";
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace sluice::tools
