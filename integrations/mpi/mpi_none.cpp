#include "integrations/mpi/mpi_bootstrap.h"

namespace sluice {

Result<UniqueId> unique_id_by_mpi(const Config&) {
  return Error{Code::unsupported,
               "this build has no MPI: set SLUICE_RENDEZVOUS_FILE to a path that all ranks see, or configure with "
               "-Dmpi=enabled"};
}

}  // namespace sluice
