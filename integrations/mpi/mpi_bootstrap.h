// A job that MPI launched over several hosts gets its UniqueId by MPI_Bcast. Nothing else here speaks MPI: afterwards MPI may be
// finalised, and is by these calls if they initialised it.
//
//   Limits   one id per call, over MPI_COMM_WORLD. In a build without MPI every call is `unsupported`.
//   Threads  the main thread, since MPI may be initialised for that one only.
#pragma once

#include "base/config.h"
#include "base/result.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {

// Collective over MPI_COMM_WORLD. The process of MPI rank 0, or one that it forks afterwards, must join as rank 0 of the id; the
// others take any other ranks. Nothing listens until then; joiners that come earlier try again. Errors: unsupported (no MPI in this build, MPI finalised already), system (an MPI call failed),
// those of Control::make_unique_id, at every rank.
Result<UniqueId> unique_id_by_mpi(const Config& config);

// True if `launch` is a job of several hosts whose ranks can only meet through MPI: no id, no rendezvous file, ranks elsewhere.
bool needs_mpi_to_meet(const LaunchEnvironment& launch);

}  // namespace sluice
