// The whole training run of one rank.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "examples/train_moe/options.h"

namespace sluice::examples {

// Collective over the runtime's world. `text` is the same at every rank. Rank 0 prints and writes the metrics. Returns once all
// ranks are done.
Status run_training(Runtime& runtime, std::span<const std::uint8_t> text, const TrainMoeOptions& options);

}  // namespace sluice::examples
