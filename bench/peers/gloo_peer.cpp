// Gloo in the measuring loop, over TCP on the loopback interface:  gloo_peer DIRECTORY RANK RANKS ring|bcube
#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/peers/loop.h"

namespace peers {
namespace {

using Algorithm = gloo::AllreduceOptions::Algorithm;

class GlooLibrary final : public Library {
 public:
  GlooLibrary(std::shared_ptr<gloo::Context> context, Algorithm algorithm)
      : context_(std::move(context)), algorithm_(algorithm) {}

  std::string name() const override { return "Gloo"; }
  Place place() const override { return {context_->rank, context_->size}; }
  bool can(Op op) const override { return op != Op::reduce_scatter; }  // its own works in place only, by halving
  std::string problem() const override { return problem_; }

  bool barrier() override {
    return guarded([this] {
      gloo::BarrierOptions options(context_);
      gloo::barrier(options);
    });
  }

  void* allocate(std::size_t bytes) override {
    memory_.emplace_back(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage), &std::free);
    return memory_.back().get();
  }
  void release() override {
    memory_.clear();
    counts_.clear();
  }

  bool run(const Work& work, float* in, float* out) override {
    return guarded([&] { call(work, in, out); });
  }

 private:
  template <class Call>
  bool guarded(Call call) {
    try {
      call();
      return true;
    } catch (const std::exception& error) {  // Gloo reports by exceptions
      problem_ = error.what();
      return false;
    }
  }

  void call(const Work& work, float* in, float* out) {
    switch (work.op) {
      case Op::all_reduce: return all_reduce(work, in, out);
      case Op::all_gather: {
        gloo::AllgatherOptions options(context_);
        options.setInput(in, work.block);
        options.setOutput(out, work.count);
        return gloo::allgather(options);
      }
      case Op::broadcast: {
        gloo::BroadcastOptions options(context_);
        options.setOutput(out, work.count);
        options.setRoot(0);
        return gloo::broadcast(options);
      }
      case Op::send_receive: return send_receive(work, in, out);
      case Op::all_to_all: {
        gloo::AlltoallOptions options(context_);
        options.setInput(in, work.count);
        options.setOutput(out, work.count);
        return gloo::alltoall(options);
      }
      case Op::reduce_scatter:
      case Op::all_to_all_v: return all_to_all_v(work, in, out);
    }
  }

  void all_reduce(const Work& work, float* in, float* out) {
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm_);
    options.setInput(in, work.count);
    options.setOutput(out, work.count);
    options.setReduceFunction(static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  }

  void send_receive(const Work& work, float* in, float* out) {
    const auto sent = context_->createUnboundBuffer(in, work.count * sizeof(float));
    const auto received = context_->createUnboundBuffer(out, work.count * sizeof(float));
    sent->send(static_cast<int>(work.next()), 1);
    received->recv(static_cast<int>(work.before()), 1);
    sent->waitSend();
    received->waitRecv();
  }

  void all_to_all_v(const Work& work, float* in, float* out) {
    if (counts_.empty()) counts_.assign(work.send.begin(), work.send.end());
    gloo::AlltoallvOptions options(context_);
    options.setInput(in, counts_);
    options.setOutput(out, counts_);
    gloo::alltoallv(options);
  }

  std::shared_ptr<gloo::Context> context_;
  Algorithm algorithm_;
  std::string problem_ = "out of memory";
  std::vector<std::unique_ptr<void, decltype(&std::free)>> memory_;
  std::vector<std::int64_t> counts_;  // of all_to_all_v, as Gloo wants them
};

int run(const std::string& directory, Place place, Algorithm algorithm) {
  gloo::transport::tcp::attr where("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(where);
  auto context = std::make_shared<gloo::rendezvous::Context>(place.rank, place.ranks);
  gloo::rendezvous::FileStore store(directory);
  context->connectFullMesh(store, device);
  GlooLibrary library(context, algorithm);
  return serve(library, directory);
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  const std::string_view algorithm = argc == 5 ? argv[4] : "";
  if (algorithm != "ring" && algorithm != "bcube")
    return std::fprintf(stderr, "usage: gloo_peer DIRECTORY RANK RANKS ring|bcube\n"), 2;
  try {
    return peers::run(argv[1], {std::atoi(argv[2]), std::atoi(argv[3])},
                      algorithm == "ring" ? peers::Algorithm::RING : peers::Algorithm::BCUBE);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "gloo_peer: %s\n", error.what()), 1;
  }
}
