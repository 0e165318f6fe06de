// Two contexts of Gloo, one thread for each:  gloo_two_lanes ... DIRECTORY RANK RANKS ADDRESS
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/rendezvous/prefix_store.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "bench/lanes/two_lanes.h"

namespace two_lanes {
namespace {

using Context = std::shared_ptr<gloo::Context>;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <typename Number>
void all_reduce(const Context& context, Number* in, Number* out, std::size_t count,
                void (*combine)(void*, const void*, const void*, std::size_t)) {
  gloo::AllreduceOptions options(context);
  options.setInput(in, count);
  options.setOutput(out, count);
  options.setReduceFunction(combine);
  gloo::allreduce(options);
}

// Gloo reports errors by exceptions: they end the program.
class Gloo final : public Library {
 public:
  Gloo(const Task& task, Context urgent, Context bulk)
      : task_(task),
        urgent_(std::move(urgent)),
        bulk_(std::move(bulk)),
        in_(task.urgent_bytes / sizeof(float), 1.0F),
        out_(in_),
        bulk_in_(task.bulk_bytes / sizeof(float), 1.0F),
        bulk_out_(bulk_in_) {}
  int rank() const override { return urgent_->rank; }
  void barrier() override {
    gloo::BarrierOptions options(urgent_);
    gloo::barrier(options);
  }
  void urgent() override {
    if (task_.all_reduce) return all_reduce(urgent_, in_.data(), out_.data(), in_.size(), &gloo::sum<float>);
    gloo::AlltoallOptions options(urgent_);
    options.setInput(in_.data(), in_.size());
    options.setOutput(out_.data(), out_.size());
    gloo::alltoall(options);
  }
  void start_bulk() override {
    thread_ = std::thread([this] {
      const double begin = now();
      for (float stop = 0; stop == 0; ++count_.operations) {
        all_reduce(bulk_, bulk_in_.data(), bulk_out_.data(), bulk_in_.size(), &gloo::sum<float>);
        float mine = stop_.load() ? 1 : 0;
        all_reduce(bulk_, &mine, &stop, 1, &gloo::sum<float>);
      }
      count_.seconds = now() - begin;
    });
  }
  void pause(int us) override { std::this_thread::sleep_for(std::chrono::microseconds(us)); }
  BulkCount stop_bulk() override {
    stop_ = true;
    thread_.join();
    return count_;
  }
  void max(std::vector<double>& values) override {
    std::vector<double> all(values.size());
    all_reduce(urgent_, values.data(), all.data(), values.size(), &gloo::max<double>);
    values = all;
  }

 private:
  Task task_;
  Context urgent_, bulk_;
  std::vector<float> in_, out_, bulk_in_, bulk_out_;
  std::thread thread_;
  std::atomic<bool> stop_{false};
  BulkCount count_;  // of thread_ until it is joined
};

Context connect(const std::string& directory, const std::string& prefix, int rank, int ranks,
                const std::string& address) {
  gloo::transport::tcp::attr at;
  at.hostname = address;
  auto device = gloo::transport::tcp::CreateDevice(at);
  gloo::rendezvous::FileStore file(directory);
  gloo::rendezvous::PrefixStore store(prefix, file);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);
  return context;
}

}  // namespace
}  // namespace two_lanes

int main(int argc, char** argv) {
  const char* const usage = "DIRECTORY RANK RANKS ADDRESS";
  const two_lanes::Task task = two_lanes::parse(argc, argv, usage);
  if (argc != 1 + two_lanes::kTaskArguments + 4) return std::fprintf(stderr, "the last arguments are %s\n", usage), 2;
  const int rank = std::atoi(argv[7]), ranks = std::atoi(argv[8]);
  try {
    two_lanes::Gloo gloo(task, two_lanes::connect(argv[6], "urgent", rank, ranks, argv[9]),
                         two_lanes::connect(argv[6], "bulk", rank, ranks, argv[9]));
    two_lanes::measure(gloo, task);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "gloo_two_lanes: rank %d: %s\n", rank, error.what()), 1;
  }
  return 0;
}
