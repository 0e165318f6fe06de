// What train_moe was asked to do: its flags, checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/types.h"
#include "layers/mesh.h"
#include "layers/model.h"
#include "layers/trainer.h"

namespace sluice::examples {

struct TrainMoeOptions {
  int local_ranks = 0;   // -g: forked here; 0: the launcher's ranks, or one
  MeshShape mesh{0, 1};  // dp 0: as many as there are ranks
  ModelShape model;
  TrainOptions train;
  LearningRate rate;
  std::int64_t steps = 1000;
  std::uint64_t seed = 1;
  std::int64_t batch = 16;  // sequences of the global batch
  double held_out = 0.05;
  std::int64_t eval_every = 100;
  std::int64_t eval_sequences = 64;
  std::string data;
  std::string metrics;  // empty: none
  int sample_bytes = 400;
  double temperature = 0.8;
};

// Reads the command line. Without options the program should end at once with `exit_code`: help was asked for, or something
// was wrong and has been said on standard error.
struct Parsed {
  std::optional<TrainMoeOptions> options;
  int exit_code = 0;
};
Parsed parse_options(int argc, char** argv);

}  // namespace sluice::examples
