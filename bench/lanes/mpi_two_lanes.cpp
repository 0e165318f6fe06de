// Two communicators of MPI, non-blocking operations on both, one thread that tests them.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>

#include "bench/lanes/two_lanes.h"

namespace two_lanes {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Without an error handler of ours a failed call ends the job.
class Mpi final : public Library {
 public:
  explicit Mpi(const Task& task)
      : task_(task),
        in_(task.urgent_bytes / sizeof(float), 1.0F),
        out_(in_),
        bulk_in_(task.bulk_bytes / sizeof(float), 1.0F),
        bulk_out_(bulk_in_) {
    MPI_Comm_dup(MPI_COMM_WORLD, &urgent_);
    MPI_Comm_dup(MPI_COMM_WORLD, &bulk_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  int rank() const override { return rank_; }

  void barrier() override {
    MPI_Request request;
    MPI_Ibarrier(urgent_, &request);
    finish(request);
  }
  void urgent() override {
    MPI_Request request;
    const int count = static_cast<int>(in_.size());
    if (task_.all_reduce)
      MPI_Iallreduce(in_.data(), out_.data(), count, MPI_FLOAT, MPI_SUM, urgent_, &request);
    else
      MPI_Ialltoall(in_.data(), count / ranks_, MPI_FLOAT, out_.data(), count / ranks_, MPI_FLOAT, urgent_, &request);
    finish(request);
  }
  void start_bulk() override {
    began_ = now();
    post_bulk();
  }
  void pause(int us) override {
    for (const double until = now() + us * 1e-6; now() < until;) push_bulk();
  }
  // Every rank ends as many as the one that is furthest.
  BulkCount stop_bulk() override {
    int most = posted_;
    MPI_Request request;
    MPI_Iallreduce(&posted_, &most, 1, MPI_INT, MPI_MAX, urgent_, &request);
    stopping_ = true;
    finish(request);
    stopping_ = false;
    while (posted_ < most || running_) {
      if (!running_) post_bulk();
      MPI_Wait(&request_, MPI_STATUS_IGNORE);
      running_ = false;
    }
    return {posted_, now() - began_};
  }
  void max(std::vector<double>& values) override {
    MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_MAX, urgent_);
  }

 private:
  void post_bulk() {
    MPI_Iallreduce(bulk_in_.data(), bulk_out_.data(), static_cast<int>(bulk_in_.size()), MPI_FLOAT, MPI_SUM, bulk_,
                   &request_);
    ++posted_;
    running_ = true;
  }
  void push_bulk() {
    if (!running_) return;
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    if (done == 0) return;
    running_ = false;
    if (!stopping_) post_bulk();
  }
  void finish(MPI_Request& request) {
    for (int done = 0; done == 0;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      push_bulk();
    }
  }

  Task task_;
  std::vector<float> in_, out_, bulk_in_, bulk_out_;
  MPI_Comm urgent_ = MPI_COMM_NULL, bulk_ = MPI_COMM_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int rank_ = 0, ranks_ = 1, posted_ = 0;
  bool running_ = false, stopping_ = false;
  double began_ = 0;
};

}  // namespace
}  // namespace two_lanes

int main(int argc, char** argv) {
  const two_lanes::Task task = two_lanes::parse(argc, argv, "");
  MPI_Init(&argc, &argv);
  {
    two_lanes::Mpi mpi(task);
    two_lanes::measure(mpi, task);
  }
  MPI_Finalize();
  return 0;
}
