// Joining a job as the launcher describes it.
//
//   What is looked at, in this order; rank and number of ranks come from the launcher's variables (base/config.h):
//     one rank, or none named      alone: no thread, no socket
//     SLUICE_UNIQUE_ID             the id; `sluice run` makes a local one. Rank 0 listens where it says.
//     SLUICE_RENDEZVOUS_FILE       rank 0 writes the file, the others wait for it: rendezvous_file.h
//     torchrun                     MASTER_ADDR, and the first free one of the 16 ports after MASTER_PORT, which torchrun's own
//                                  store holds. The secret: SLUICE_SECRET, or, lacking it, derived from these variables, with
//                                  a warning: then whoever knows them can join.
//     MPI or Slurm on one host     a file named after the job, in XDG_RUNTIME_DIR or /tmp/sluice-UID. Over several hosts: set one
//                                  of the first two, or join through MPI (integrations/mpi).
#pragma once

#include <memory>

#include "base/config.h"
#include "base/result.h"
#include "comm/bootstrap/control.h"
#include "comm/bootstrap/join_state.h"

namespace sluice {

inline constexpr int kTorchrunPorts = 16;

// `tuning`: PeerInfo::tuning of this rank. Errors: as Control::join; invalid_argument names the variable that is missing or wrong.
Result<std::unique_ptr<Control>> control_from_environment(const Config& config, const LaunchEnvironment& launch,
                                                          std::uint64_t tuning = 0);

// Where torchrun's variables lead to. Errors: timeout: the host's name is not known (yet).
Result<Rendezvous> torchrun_rendezvous(const LaunchEnvironment& launch);

}  // namespace sluice
