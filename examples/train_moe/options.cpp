#include "examples/train_moe/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "examples/text/read_text.h"

namespace sluice::examples {
namespace {

constexpr int kUsageError = 2;
constexpr int kMany = 1 << 30;

// Flags whose meaning is fixed and whose parallel axis does not exist yet.
struct NotBuilt {
  int tp = 1, cp = 1, pp = 1, etp = 1, zero = 0;
  bool sp = false;
  std::string device = "cpu", checkpoint;
};

void add_not_built(CLI::App& app, NotBuilt& flags) {
  app.add_option("--tp", flags.tp, "tensor-parallel ranks (not built yet)")->check(CLI::Range(1, kMany));
  app.add_option("--cp", flags.cp, "context-parallel ranks (not built yet)")->check(CLI::Range(1, kMany));
  app.add_option("--pp", flags.pp, "pipeline stages (not built yet)")->check(CLI::Range(1, kMany));
  app.add_option("--etp", flags.etp, "tensor-parallel ranks of an expert (not built yet)")->check(CLI::Range(1, kMany));
  app.add_flag("--sp", flags.sp, "sequence parallel (not built yet)");
  app.add_option("--zero", flags.zero, "sharding of optimizer state, 0 to 3 (1 to 3 not built yet)")
      ->check(CLI::Range(0, 3));
  app.add_option("--device", flags.device, "cpu or cuda (cuda not built yet)")->check(CLI::IsMember({"cpu", "cuda"}));
  app.add_option("--checkpoint", flags.checkpoint, "folder to save to and resume from (not built yet)");
}

Status refuse_not_built(const NotBuilt& flags) {
  const auto refuse = [](const char* flag, const auto& value, const char* what, const char* cure) {
    return Status(Code::unsupported, fmt::format("{} {}: {} is not built yet; {}", flag, value, what, cure));
  };
  if (flags.tp != 1) return refuse("--tp", flags.tp, "tensor parallelism", "leave it at 1");
  if (flags.cp != 1) return refuse("--cp", flags.cp, "context parallelism", "leave it at 1");
  if (flags.pp != 1) return refuse("--pp", flags.pp, "pipeline parallelism", "leave it at 1");
  if (flags.etp != 1) return refuse("--etp", flags.etp, "expert-tensor parallelism", "leave it at 1");
  if (flags.sp) return refuse("--sp", "", "sequence parallelism", "leave it out");
  if (flags.zero != 0) return refuse("--zero", flags.zero, "sharding of optimizer state", "leave it at 0");
  if (flags.device != "cpu") return refuse("--device", flags.device, "training on a GPU", "use --device cpu");
  if (!flags.checkpoint.empty()) return refuse("--checkpoint", flags.checkpoint, "saving and resuming", "leave it out");
  return {};
}

void add_run(CLI::App& app, TrainMoeOptions& o, std::string& order) {
  app.add_option("-g", o.local_ranks, "ranks to fork here (without it: the launcher's ranks, or one)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--steps", o.steps, "training steps")->check(CLI::Range(1, kMany))->capture_default_str();
  app.add_option("--seed", o.seed, "of weights, sample order and generated text")->capture_default_str();
  app.add_option("--dp", o.mesh.dp, "data-parallel ranks (default: all)")->check(CLI::Range(1, kMany));
  app.add_option("--ep", o.mesh.ep, "expert-parallel ranks, carved from dp")
      ->check(CLI::Range(1, kMany))
      ->capture_default_str();
  app.add_option("--order", order, "order of sums between ranks: fast or canonical")
      ->check(CLI::IsMember({"fast", "canonical"}))
      ->capture_default_str();
  app.add_option("--data", o.data, "text to learn, plain or gzip-compressed")->capture_default_str();
  app.add_option("--metrics", o.metrics, "file for one JSON object a step");
  app.add_option("--held-out", o.held_out, "part of the text, at its end, that is never trained on")
      ->check(CLI::Range(0.0, 0.9))
      ->capture_default_str();
  app.add_option("--eval-every", o.eval_every, "steps between looks at the held-out loss")
      ->check(CLI::Range(1, kMany))
      ->capture_default_str();
  app.add_option("--eval-sequences", o.eval_sequences,
                 "held-out windows of such a look (the last look takes 4 times as many)")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--sample-bytes", o.sample_bytes, "length of the generated text at the end")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--temperature", o.temperature, "of the generated text")
      ->check(CLI::Range(0.01, 100.0))
      ->capture_default_str();
}

void add_model(CLI::App& app, TrainMoeOptions& o) {
  const auto size = CLI::Range(1, 1 << 20);
  app.add_option("--batch", o.batch, "sequences of the global batch")->check(size)->capture_default_str();
  app.add_option("--sequence", o.model.sequence, "bytes of a sequence")->check(size)->capture_default_str();
  app.add_option("--layers", o.model.layers, "blocks")->check(size)->capture_default_str();
  app.add_option("--hidden", o.model.hidden, "width of the model")->check(size)->capture_default_str();
  app.add_option("--heads", o.model.heads, "query heads")->check(size)->capture_default_str();
  app.add_option("--kv-heads", o.model.kv_heads, "key and value heads")->check(size)->capture_default_str();
  app.add_option("--experts", o.model.experts, "experts of a block")->check(size)->capture_default_str();
  app.add_option("--top-k", o.model.top_k, "experts that a token visits")->check(size)->capture_default_str();
  app.add_option("--inner", o.model.inner, "inner width of an expert")->check(size)->capture_default_str();
  app.add_option("--shared-inner", o.model.shared_inner, "inner width of the shared expert, 0: none")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--balance", o.model.balance, "factor of the balance loss")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  app.add_option("--lr", o.rate.peak, "largest learning rate")->check(CLI::Range(0.0, 1e3))->capture_default_str();
  app.add_option("--warmup", o.rate.warmup, "steps until it is reached")
      ->check(CLI::Range(0, kMany))
      ->capture_default_str();
  app.add_option("--weight-decay", o.train.adamw.weight_decay, "of matrices")
      ->check(CLI::Range(0.0, 1e3))
      ->capture_default_str();
  app.add_option("--clip", o.train.clip, "limit of the gradients' norm, 0: none")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
}

}  // namespace

Parsed parse_options(int argc, char** argv) {
  TrainMoeOptions options;
  options.data = kDefaultText;
  std::string order = "fast";
  NotBuilt not_built;
  CLI::App app(
      "Trains a mixture-of-experts language model on the bytes of a text, over data- and expert-parallel ranks");
  add_run(app, options, order);
  add_model(app, options);
  add_not_built(app, not_built);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error) == 0 ? 0 : kUsageError};
  }
  options.train.order = order == "canonical" ? Order::canonical : Order::fast;
  options.rate.steps = options.steps;
  for (const Status& status : {refuse_not_built(not_built), check_shape(options.model)})
    if (!status.ok()) {
      fmt::print(stderr, "train_moe: {}\n", status.text());
      return {std::nullopt, kUsageError};
    }
  return {options, 0};
}

}  // namespace sluice::examples
