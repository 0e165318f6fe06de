#include "examples/train_moe/run.h"

#include <fmt/format.h>

#include "examples/train_moe/generate.h"
#include "examples/train_moe/report.h"
#include "layers/data/byte_data.h"

namespace sluice::examples {
namespace {

constexpr std::int64_t kLastLook = 4;  // times the windows of a look at the held-out part

double seconds_since(Nanoseconds begun) {
  return std::chrono::duration<double>(RealClock::instance().now() - begun).count();
}

void print_start(const TrainMoeOptions& o, const Mesh& mesh, const ByteData& data, Model<float>& model) {
  const auto experts = static_cast<long>(o.model.experts) * 3 * o.model.hidden * o.model.inner * o.model.layers;
  fmt::print("{} blocks of width {}, {} experts (top {}), {} parameters; dp {}, ep {}\n", o.model.layers,
             o.model.hidden, o.model.experts, o.model.top_k, model.parameters().count(Placement::replicated) + experts,
             mesh.shape().dp, mesh.shape().ep);
  fmt::print("{} bytes to learn from; a step takes {} sequences of {}, an epoch {} steps\n", data.training_bytes(),
             o.batch, o.model.sequence,
             (data.samples() + static_cast<std::uint64_t>(o.batch) - 1) / static_cast<std::uint64_t>(o.batch));
}

class Training {
 public:
  Training(Runtime& runtime, Mesh& mesh, ByteData data, const TrainMoeOptions& options)
      : runtime_(runtime),
        mesh_(mesh),
        data_(data),
        options_(options),
        model_(options.model, mesh, options.seed),
        trainer_(model_, mesh, options.train) {}

  Status run() {
    if (mesh_.dp_rank() == 0) {
      SLUICE_TRY_ASSIGN(report_, Report::create(options_.metrics, options_.steps));
      print_start(options_, mesh_, data_, model_);
    }
    for (std::int64_t step = 0; step < options_.steps; ++step) SLUICE_TRY(one_step(step));
    if (options_.held_out > 0) {
      SLUICE_TRY_ASSIGN(const double loss, look(options_.eval_sequences * kLastLook));
      if (report_) report_->finish(loss, runtime_.lane_counters());
    }
    return show_sample();
  }

 private:
  Status one_step(std::int64_t step) {
    StepReport report;
    report.step = step + 1;
    report.learning_rate = options_.rate.at(step);
    const Nanoseconds begun = RealClock::instance().now();
    const auto first = static_cast<std::uint64_t>(step) * static_cast<std::uint64_t>(options_.batch);
    const Batch batch = data_.batch(first, options_.batch, mesh_.dp_rank(), mesh_.shape().dp);
    SLUICE_TRY_ASSIGN(report.result, trainer_.step(batch, report.learning_rate));
    report.seconds = seconds_since(begun);
    if (options_.held_out > 0 && report.step % options_.eval_every == 0) {
      SLUICE_TRY_ASSIGN(report.eval_loss, look(options_.eval_sequences));
    }
    if (report_) report_->step(report, runtime_.lane_counters());
    return {};
  }

  Result<double> look(std::int64_t windows) {
    return trainer_.evaluate(data_.held_out(windows, mesh_.dp_rank(), mesh_.shape().dp));
  }

  Status show_sample() {
    if (options_.sample_bytes == 0) return {};
    GenerateOptions wish;
    wish.bytes = options_.sample_bytes;
    wish.temperature = options_.temperature;
    wish.seed = options_.seed;
    SLUICE_TRY_ASSIGN(const std::string text, generate(model_, mesh_.dp_rank(), wish));
    if (report_) fmt::print("--- a sample, temperature {} ---\n{}\n---\n", options_.temperature, printable(text));
    return {};
  }

  Runtime& runtime_;
  Mesh& mesh_;
  ByteData data_;
  const TrainMoeOptions& options_;
  Model<float> model_;
  Trainer<float> trainer_;
  std::unique_ptr<Report> report_;
};

}  // namespace

Status run_training(Runtime& runtime, std::span<const std::uint8_t> text, const TrainMoeOptions& options) {
  use_one_blas_thread();
  Communicator world = runtime.world();
  MeshShape shape = options.mesh;
  if (shape.dp == 0) shape.dp = world.ranks();
  SLUICE_TRY_ASSIGN(ByteData data, ByteData::create(text, {options.model.sequence, options.held_out, options.seed}));
  SLUICE_TRY_ASSIGN(Mesh mesh, Mesh::create(world, shape));
  Training training(runtime, mesh, data, options);
  if (const Status status = training.run(); !status.ok()) {
    mesh.abort("training failed: " + status.text());
    return status;
  }
  SLUICE_TRY(mesh.close());
  return world.close();
}

}  // namespace sluice::examples
