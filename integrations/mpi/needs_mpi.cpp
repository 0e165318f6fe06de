#include "integrations/mpi/mpi_bootstrap.h"

namespace sluice {

bool needs_mpi_to_meet(const LaunchEnvironment& launch) {
  const bool by_mpi = launch.source == "openmpi" || launch.source == "mpich" || launch.source == "slurm";
  const bool elsewhere = launch.local_ranks > 0 && launch.local_ranks < launch.ranks;
  return by_mpi && elsewhere && launch.unique_id.empty() && launch.rendezvous_file.empty();
}

}  // namespace sluice
