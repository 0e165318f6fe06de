// A text as training data: bytes are the tokens, windows of it the samples.
//
//   Parts    the last `held_out` of the bytes are never trained on. Of the rest, sample j is the window of targets
//            [j * length, (j + 1) * length), the last one possibly short; the input of a target is the byte before it (of the
//            first byte: a line feed). So an epoch has each byte once as a target, and once as an input.
//   Order    global sample g is sample order(g mod n) of epoch g / n (sample_order.h), n samples an epoch. A step's global
//            batch is the next `batch` global samples: nothing is skipped or repeated where epochs meet.
//   Layout   rank i of dp takes part i of the batch's samples (part_of in mesh.h); any batch, any dp. A short sample is filled
//            up with targets that do not count.
//   Borrows  the text.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "layers/batch.h"

namespace sluice {

struct ByteDataOptions {
  Index length = 128;      // of a sample
  double held_out = 0.05;  // 0 <= held_out < 1
  std::uint64_t seed = 1;
};

class ByteData {
 public:
  // invalid_argument when there is not one byte to train on, or a value is out of range.
  static Result<ByteData> create(std::span<const std::uint8_t> text, ByteDataOptions options);

  std::uint64_t samples() const { return samples_; }  // an epoch's
  std::uint64_t training_bytes() const { return training_.size(); }

  // The share of rank `dp_rank` of `dp` in the global batch that begins at global sample `first`.
  Batch batch(std::uint64_t first, Index batch, int dp_rank, int dp) const;

  // Of the held-out part: `count` windows spread evenly over it, cut over the ranks as a batch is. The same at every call.
  // Fewer when the part has fewer; none when it is empty.
  Batch held_out(Index count, int dp_rank, int dp) const;

 private:
  ByteData(std::span<const std::uint8_t> text, ByteDataOptions options, std::size_t training_bytes);
  void window(std::span<const std::uint8_t> bytes, std::size_t first, Index row, Batch& batch) const;
  Batch empty(Index sequences) const;

  ByteDataOptions options_;
  std::span<const std::uint8_t> training_;
  std::span<const std::uint8_t> held_out_;
  std::uint64_t samples_;
};

}  // namespace sluice
