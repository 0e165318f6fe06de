// Every rank gives its number and gets the sum. Run it alone, or as N ranks: mpirun -n 4 ./all_reduce
#include <cstdio>
#include <vector>

#include <sluice/sluice.h>

int main() {
  auto runtime = sluice::Runtime::from_environment();  // mpirun, torchrun, sluice run, or one process alone
  if (!runtime.ok()) return std::fprintf(stderr, "%s\n", runtime.error().text.c_str()), 1;
  sluice::Communicator world = (*runtime)->world();

  std::vector<float> values(1000, static_cast<float>(world.rank() + 1));
  sluice::Work work = world.all_reduce({values.data(), values.data(), values.size()}, sluice::ReduceOp::sum);
  if (sluice::Status status = work.wait(); !status.ok()) return std::fprintf(stderr, "%s\n", status.text().c_str()), 1;

  std::printf("rank %d of %d: the sum is %g\n", world.rank(), world.ranks(), static_cast<double>(values[999]));
  return world.close().ok() ? 0 : 1;
}
