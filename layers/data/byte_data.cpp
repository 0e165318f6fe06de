#include "layers/data/byte_data.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/data/sample_order.h"
#include "layers/mesh.h"

namespace sluice {

Result<ByteData> ByteData::create(std::span<const std::uint8_t> text, ByteDataOptions options) {
  if (options.length < 1)
    return Error{Code::invalid_argument,
                 fmt::format("data: a sample of {} bytes, it must be at least 1", options.length)};
  if (!(options.held_out >= 0 && options.held_out < 1))
    return Error{Code::invalid_argument, fmt::format("data: held-out part {}, it must be in [0, 1)", options.held_out)};
  const auto held_out = static_cast<std::size_t>(std::floor(static_cast<double>(text.size()) * options.held_out));
  if (text.size() == held_out) return Error{Code::invalid_argument, "data: the text has no byte to train on"};
  return ByteData(text, options, text.size() - held_out);
}

ByteData::ByteData(std::span<const std::uint8_t> text, ByteDataOptions options, std::size_t training_bytes)
    : options_(options), training_(text.first(training_bytes)), held_out_(text.subspan(training_bytes)) {
  const auto length = static_cast<std::size_t>(options_.length);
  samples_ = (training_.size() + length - 1) / length;
}

Batch ByteData::empty(Index sequences) const {
  Batch batch;
  batch.sequences = sequences;
  batch.length = options_.length;
  batch.inputs.assign(static_cast<std::size_t>(batch.tokens()), '\n');
  batch.targets.assign(static_cast<std::size_t>(batch.tokens()), kNotCounted);
  return batch;
}

void ByteData::window(std::span<const std::uint8_t> bytes, std::size_t first, Index row, Batch& batch) const {
  const auto length = static_cast<std::size_t>(options_.length);
  const std::size_t count = std::min(length, bytes.size() - first);
  const std::size_t to = static_cast<std::size_t>(row) * length;
  for (std::size_t i = 0; i < count; ++i) {
    batch.inputs[to + i] = first + i > 0 ? bytes[first + i - 1] : '\n';
    batch.targets[to + i] = bytes[first + i];
  }
}

Batch ByteData::batch(std::uint64_t first, Index batch, int dp_rank, int dp) const {
  const Part part = part_of(batch, dp_rank, dp);
  Batch result = empty(part.count);
  for (Index row = 0; row < part.count; ++row) {
    const std::uint64_t sample = first + static_cast<std::uint64_t>(part.first + row);
    const SampleOrder order(samples_, options_.seed, sample / samples_);
    window(training_, order(sample % samples_) * static_cast<std::uint64_t>(options_.length), row, result);
  }
  return result;
}

Batch ByteData::held_out(Index count, int dp_rank, int dp) const {
  const auto length = static_cast<std::size_t>(options_.length);
  const std::size_t windows = (held_out_.size() + length - 1) / length;
  const auto taken = static_cast<Index>(std::min(windows, static_cast<std::size_t>(count)));
  const Part part = part_of(taken, dp_rank, dp);
  Batch result = empty(part.count);
  for (Index row = 0; row < part.count; ++row) {
    const auto which = static_cast<std::size_t>(part.first + row);
    window(held_out_, which * windows / static_cast<std::size_t>(taken) * length, row, result);
  }
  return result;
}

}  // namespace sluice
