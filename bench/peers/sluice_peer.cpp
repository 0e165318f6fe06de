// Sluice in the measuring loop:  sluice_peer DIRECTORY windows|plain
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/peers/loop.h"
#include "comm/communicator.h"
#include "sluice/version.h"

namespace peers {
namespace {

class SluiceLibrary final : public Library {
 public:
  SluiceLibrary(sluice::Communicator world, bool windows) : world_(std::move(world)), windows_(windows) {}

  std::string name() const override { return std::string("Sluice ") + SLUICE_VERSION_STRING; }
  Place place() const override { return {world_.rank(), world_.ranks()}; }
  bool can(Op) const override { return true; }
  bool maps_others() const override { return windows_; }
  bool barrier() override { return done(world_.barrier()); }
  std::string problem() const override { return status_.ok() ? "out of memory" : status_.text(); }

  void* allocate(std::size_t bytes) override {
    if (!windows_) {
      plain_.emplace_back(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage), &std::free);
      return plain_.back().get();
    }
    auto window = world_.allocate(bytes + kPage);
    if (!window.ok()) return status_ = window.error(), nullptr;
    buffers_.push_back(std::move(*window));
    auto* const data = static_cast<std::byte*>(buffers_.back().data());
    return data + (kPage - reinterpret_cast<std::uintptr_t>(data) % kPage) % kPage;
  }

  void release() override {
    buffers_.clear();
    plain_.clear();
  }

  bool run(const Work& work, float* in, float* out) override {
    using sluice::ReduceOp;
    switch (work.op) {
      case Op::all_reduce: return done(world_.all_reduce({in, out, work.count}, ReduceOp::sum));
      case Op::reduce_scatter: return done(world_.reduce_scatter({in, out, work.block}, ReduceOp::sum));
      case Op::all_gather: return done(world_.all_gather({in, out, work.block}));
      case Op::broadcast: return done(world_.broadcast({out, out, work.count}, 0));
      case Op::send_receive: return send_receive(work, in, out);
      case Op::all_to_all: return done(world_.all_to_all({in, out, work.block}));
      case Op::all_to_all_v: break;
    }
    const sluice::Blocks blocks{work.send, work.offsets};
    return done(world_.all_to_all_v({in, out, 0}, blocks, blocks));
  }

 private:
  bool done(sluice::Work work) {
    status_ = work.wait();
    return status_.ok();
  }

  bool send_receive(const Work& work, const float* in, float* out) {
    constexpr auto kType = sluice::DataType::float32;
    sluice::Work sent = world_.send(in, work.count, kType, static_cast<int>(work.next()));
    sluice::Work received = world_.receive(out, work.count, kType, static_cast<int>(work.before()));
    return done(std::move(received)) && done(std::move(sent));
  }

  sluice::Communicator world_;
  bool windows_;
  sluice::Status status_;
  std::vector<sluice::WindowBuffer> buffers_;
  std::vector<std::unique_ptr<void, decltype(&std::free)>> plain_;
};

int run(const std::string& directory, bool windows) {
  auto runtime = sluice::Runtime::from_environment();
  if (!runtime.ok()) return std::fprintf(stderr, "sluice_peer: %s\n", runtime.error().text.c_str()), 1;
  SluiceLibrary library((*runtime)->world(), windows);
  const int result = serve(library, directory);
  return (*runtime)->world().close().ok() ? result : 1;
}

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  const std::string_view memory = argc == 3 ? argv[2] : "";
  if (memory != "windows" && memory != "plain")
    return std::fprintf(stderr, "usage: sluice_peer DIRECTORY windows|plain\n"), 2;
  return peers::run(argv[1], memory == "windows");
}
