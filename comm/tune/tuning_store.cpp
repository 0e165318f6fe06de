#include "comm/tune/tuning_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "base/replace_file.h"
#include "base/unique_fd.h"
#include "comm/bootstrap/secrets.h"
#include "transport/topology/probe.h"

namespace sluice {
namespace {

constexpr std::string_view kSuffix = ".tuning";
constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;

std::uint64_t in_gibibytes(std::uint64_t bytes) { return (bytes + kGibibyte / 2) / kGibibyte; }

// One word a node: what it is and what decides its speed.
void outline(const TopologyNode& node, std::string& out) {
  switch (node.kind) {
    case NodeKind::machine:
    case NodeKind::numa: out += "(" + std::string(name(node.kind)) + std::to_string(in_gibibytes(node.bytes)); break;
    case NodeKind::package: out += "(package " + node.name; break;
    case NodeKind::cache: out += "(L" + std::to_string(node.level) + " " + std::to_string(node.bytes); break;
    case NodeKind::die:
    case NodeKind::group:
    case NodeKind::core:
    case NodeKind::thread: out += "(" + std::string(name(node.kind)); break;
    default: return;
  }
  for (const TopologyNode& child : node.children) outline(child, out);
  out += ")";
}

std::string package_name(const TopologyNode& node) {
  if (node.kind == NodeKind::package && !node.name.empty()) return node.name;
  for (const TopologyNode& child : node.children)
    if (const std::string found = package_name(child); !found.empty()) return found;
  return {};
}

Result<std::uint64_t> probed_fingerprint() {
  SLUICE_TRY_ASSIGN(const Topology topology, probe_topology());
  return machine_fingerprint(topology);
}

// The machine stays what it is: looked at once, for probing takes tens of milliseconds and threads may be ranks.
const Result<std::uint64_t>& this_machine() {
  static const Result<std::uint64_t> found = probed_fingerprint();
  return found;
}

bool holds_any(const std::string& folder) {
  std::error_code failed;
  for (std::filesystem::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == kSuffix) return true;
  return false;
}

Status check_ours(const struct stat& found, const std::string& path) {
  if (!S_ISREG(found.st_mode)) return {Code::refused, path + " is not a plain file"};
  if (found.st_uid != ::geteuid() && found.st_uid != 0)
    return {Code::refused, path + " belongs to user " + std::to_string(found.st_uid) + ", not to user " +
                               std::to_string(::geteuid()) + " or root"};
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return {Code::refused, path + " can be written by other users: chmod go-w it"};
  if (found.st_size > static_cast<off_t>(kMachineFileBytesMax))
    return {Code::invalid_argument, path + " has " + std::to_string(found.st_size) + " bytes, more than " +
                                        std::to_string(kMachineFileBytesMax)};
  return {};
}

// As much as the file holds, never more than the bound.
Result<std::string> read_bounded(int fd, const std::string& path) {
  std::string text(kMachineFileBytesMax + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(fd, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("can't read the tuning file " + path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

Tuning none(std::string why, std::string path = {}) {
  Tuning tuning;
  tuning.path = std::move(path);
  tuning.why_none = std::move(why);
  return tuning;
}

Tuning refused(const Error& error, std::string path) {
  Tuning tuning = none(error.text, std::move(path));
  tuning.refused = true;
  return tuning;
}

// `machine`: what the file must have been measured on; nullopt: anything.
Tuning load_from(const std::string& path, std::optional<std::uint64_t> machine) {
  const auto found = read_tuning_text(path);
  if (!found.ok()) return refused(found.error(), path);
  const std::optional<std::string>& text = *found;
  const std::string missing = "there is no tuning file " + path + ": sluice tune writes it";
  if (!text && machine) return none(missing, path);
  if (!text) return refused({Code::invalid_argument, missing}, path);  // it was named
  auto file = parse_machine_file(*text);
  if (!file.ok()) return refused({file.error().code, "tuning file " + path + ", " + file.error().text}, path);
  if (machine && file->machine != *machine)
    return refused({Code::invalid_argument, "tuning file " + path + " was measured on another machine (" +
                                                file->description + "): run sluice tune, or remove it"},
                   path);
  Tuning tuning;
  tuning.digest = std::max<std::uint64_t>(XXH3_64bits(text->data(), text->size()), 1);
  tuning.file = std::make_unique<const MachineFile>(*std::move(file));
  tuning.path = path;
  return tuning;
}

}  // namespace

std::uint64_t machine_fingerprint(const Topology& topology) {
  std::string text;
  outline(topology.root, text);
  return XXH3_64bits(text.data(), text.size());
}

std::string describe_machine(const Topology& topology) {
  const std::string processor = package_name(topology.root);
  return std::to_string(topology.count(NodeKind::core)) + " cores, " +
         std::to_string(topology.count(NodeKind::thread)) + " threads of " +
         (processor.empty() ? "an unnamed processor" : processor) + ", " +
         std::to_string(in_gibibytes(topology.root.bytes)) + " GiB";
}

std::string tuning_folder() {
  // A relative XDG folder has to be ignored.
  if (const std::string cache = environment_variable("XDG_CACHE_HOME"); cache.starts_with('/'))
    return cache + "/sluice";
  if (const std::string home = environment_variable("HOME"); home.starts_with('/')) return home + "/.cache/sluice";
  return {};
}

std::string tuning_path(const std::string& folder, std::uint64_t machine) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(machine >> (56 - 8 * i));
  return folder + "/machine-" + hex(bytes) + std::string(kSuffix);
}

Status write_tuning(const std::string& path, const MachineFile& file) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code failed;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (failed) return {Code::system, "can't make the folder " + folder.string() + ": " + failed.message()};
  return replace_file(path, print(file), 0644, "the tuning file");
}

Result<std::optional<std::string>> read_tuning_text(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!fd && errno == ENOENT) return std::optional<std::string>();
  if (!fd) return system_error("can't open the tuning file " + path, errno);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return system_error("can't look at the tuning file " + path, errno);
  SLUICE_TRY(check_ours(found, "tuning file " + path));
  SLUICE_TRY_ASSIGN(std::string text, read_bounded(fd.get(), path));
  return std::optional(std::move(text));
}

Tuning load_tuning(const Config& config) {
  const std::string& wanted = config.text(Setting::tuning);
  if (wanted == "off") return none("the setting tuning (SLUICE_TUNING) is off");
  if (wanted != "auto") return load_from(wanted, std::nullopt);
  const std::string folder = tuning_folder();
  if (folder.empty()) return none("neither XDG_CACHE_HOME nor HOME names a folder to look in");
  if (!holds_any(folder)) return none("there is no tuning file in " + folder + ": sluice tune writes it");
  const Result<std::uint64_t>& machine = this_machine();
  if (!machine.ok()) return none("this machine has no fingerprint: " + machine.error().text);
  return load_from(tuning_path(folder, *machine), *machine);
}

}  // namespace sluice
