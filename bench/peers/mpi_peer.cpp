// An MPI in the measuring loop:  mpi_peer DIRECTORY. Compiled once for each MPI; only MPI's C interface is used.
#define OMPI_SKIP_MPICXX 1  // the C interface alone
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "bench/peers/loop.h"

namespace peers {
namespace {

// Without an error handler of ours a failed call ends the job, so what returns has succeeded.
class MpiLibrary final : public Library {
 public:
  MpiLibrary() {
    MPI_Comm_rank(MPI_COMM_WORLD, &place_.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &place_.ranks);
  }

  std::string name() const override {
#ifdef OPEN_MPI
    return "Open MPI " + std::to_string(OMPI_MAJOR_VERSION) + '.' + std::to_string(OMPI_MINOR_VERSION) + '.' +
           std::to_string(OMPI_RELEASE_VERSION);
#else
    return std::string("MPICH ") + MPICH_VERSION;
#endif
  }
  Place place() const override { return place_; }
  bool can(Op) const override { return true; }
  bool barrier() override { return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS; }
  std::string problem() const override { return "an MPI call or an allocation failed"; }

  void* allocate(std::size_t bytes) override {
    memory_.emplace_back(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage), &std::free);
    return memory_.back().get();
  }
  void release() override {
    memory_.clear();
    counts_.clear();
  }

  bool run(const Work& work, float* in, float* out) override { return call(work, in, out) == MPI_SUCCESS; }

 private:
  int call(const Work& work, float* in, float* out) {
    const MPI_Comm world = MPI_COMM_WORLD;
    const int count = static_cast<int>(work.count), block = static_cast<int>(work.block);
    switch (work.op) {
      case Op::all_reduce: return MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, world);
      case Op::reduce_scatter: return MPI_Reduce_scatter_block(in, out, block, MPI_FLOAT, MPI_SUM, world);
      case Op::all_gather: return MPI_Allgather(in, block, MPI_FLOAT, out, block, MPI_FLOAT, world);
      case Op::broadcast: return MPI_Bcast(out, count, MPI_FLOAT, 0, world);
      case Op::send_receive:
        return MPI_Sendrecv(in, count, MPI_FLOAT, static_cast<int>(work.next()), 0, out, count, MPI_FLOAT,
                            static_cast<int>(work.before()), 0, world, MPI_STATUS_IGNORE);
      case Op::all_to_all: return MPI_Alltoall(in, block, MPI_FLOAT, out, block, MPI_FLOAT, world);
      case Op::all_to_all_v: break;
    }
    if (counts_.empty()) {
      counts_.assign(work.send.begin(), work.send.end());
      offsets_.assign(work.offsets.begin(), work.offsets.end());
    }
    return MPI_Alltoallv(in, counts_.data(), offsets_.data(), MPI_FLOAT, out, counts_.data(), offsets_.data(),
                         MPI_FLOAT, world);
  }

  Place place_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  std::vector<int> counts_, offsets_;  // of all_to_all_v, as MPI wants them
};

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: mpi_peer DIRECTORY\n"), 2;
  MPI_Init(&argc, &argv);
  int result = 0;
  {
    peers::MpiLibrary library;
    result = peers::serve(library, argv[1]);
  }
  MPI_Finalize();
  return result;
}
