// Where measured times are kept: a file per machine, found by the machine's fingerprint.
//
//   Place    $XDG_CACHE_HOME/sluice, or ~/.cache/sluice: machine-FINGERPRINT.tuning. The setting `tuning` (SLUICE_TUNING) names
//            another file, which is then used whatever machine it was measured on, or none (off).
//   Trust    a file is read only if it is a plain file of this user or of root that nobody else may write; it is bounded, and
//            what it says is checked (machine_file.h). One that can't be used is as good as none, and says why.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "comm/tune/machine_file.h"
#include "transport/topology/topology.h"

namespace sluice {

// Of what decides how fast a machine is: processors, caches, memory (in GiB) and how they hang together; not its name nor its
// devices, so equal machines are one.
std::uint64_t machine_fingerprint(const Topology& topology);
std::string describe_machine(const Topology& topology);  // "2 cores, 2 threads of EPYC 7763, 8 GiB"

// Empty when neither XDG_CACHE_HOME nor HOME names a folder.
std::string tuning_folder();
std::string tuning_path(const std::string& folder, std::uint64_t machine);

// Replaces the file in one step; its folder is made if it is missing. Errors: system, naming the path.
Status write_tuning(const std::string& path, const MachineFile& file);
// nullopt: there is none. Errors: refused: not ours; invalid_argument: too long; system.
Result<std::optional<std::string>> read_tuning_text(const std::string& path);

// What a rank will choose by.
struct Tuning {
  std::unique_ptr<const MachineFile> file;  // null: predictions
  std::uint64_t digest = 0;                 // of the file's text; 0: none
  std::string path;                         // of the file, or of the one that could not be used
  std::string why_none;                     // for people; empty when there is a file
  bool refused = false;                     // there is a file, but it can't be used
};
// Looks for it as the setting says. Takes a moment when the machine has to be looked at first: that is when the folder holds any.
Tuning load_tuning(const Config& config);

}  // namespace sluice
