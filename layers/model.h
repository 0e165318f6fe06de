// A decoder-only mixture-of-experts transformer with explicit forward and backward.
//
//   Block    x += attention(norm(x)); x += moe(norm(x)). Then a last norm and the output layer (not tied to the embedding).
//   Stages   of the parameters: 0 the embedding, 1..L the blocks, L+1 last norm and output (see parameters.h).
//   Memory   activations of one batch are kept from forward to backward; per token and block about
//            (6 hidden + 3 top_k inner + top_k hidden + heads * sequence) elements.
//   Threads  one thread per rank; the ranks of the mesh make the same calls in the same order, with any number of sequences
//            each, none included.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "layers/attention.h"
#include "layers/batch.h"
#include "layers/mesh.h"
#include "layers/moe.h"
#include "layers/parameters.h"
#include "layers/rms_norm.h"

namespace sluice {

struct ModelShape {
  int vocabulary = 256;
  int sequence = 128;  // longest sequence
  int layers = 3;
  int hidden = 128;
  int heads = 4;
  int kv_heads = 2;
  int experts = 8;
  int top_k = 2;
  int inner = 256;        // of one expert
  int shared_inner = 0;   // of the shared expert; 0: none
  double balance = 0.01;  // factor of the balance loss
};

// invalid_argument names the field, its value and what it must be.
Status check_shape(const ModelShape& shape);

template <typename T>
class Model {
 public:
  // `mesh` outlives the model. shape: as check_shape wants it.
  Model(const ModelShape& shape, Mesh& mesh, std::uint64_t seed);
  ~Model();

  // Sum of the cross-entropies of this rank's counted targets. `training`: backward will follow.
  Result<double> forward(const Batch& batch, bool training);
  // Of the last forward. Adds the gradients of (sum over the global batch of ce) / tokens + balance loss to the parameters';
  // calls stage_done(s) when those of stage s are complete on this rank.
  Status backward(const Batch& batch, std::int64_t tokens, const std::function<void(int)>& stage_done);
  // This rank's summand of the balance loss, after backward.
  double balance_loss(std::int64_t tokens) const;
  // Forward without a loss: the logits of each sequence's last token, [sequences, vocabulary], until the next call.
  Result<View<const T>> next_token_logits(const Batch& batch);
  // Slots per expert over dp, one vector a layer, of the last training step.
  std::vector<std::vector<std::int64_t>> expert_counts() const;

  Parameters<T>& parameters() { return parameters_; }
  const ModelShape& shape() const { return shape_; }

 private:
  struct Block;
  struct Scratch;
  void add_parameters(std::uint64_t seed);
  Status run_blocks(const Batch& batch, bool training);

  ModelShape shape_;
  Parameters<T> parameters_;
  Rotary<T> rotary_;
  ExpertExchange<T> exchange_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Scratch> scratch_;
  Weight<T> embedding_;
  Weight<T> output_;
  RmsNorm<T> last_norm_;
};

}  // namespace sluice
