#include "layers/model.h"

#include <fmt/format.h>

#include <cmath>

#include "layers/compute/rows.h"
#include "layers/embedding.h"

namespace sluice {

template <typename T>
struct Model<T>::Block {
  RmsNorm<T> attention_norm;
  Attention<T> attention;
  RmsNorm<T> moe_norm;
  Moe<T> moe;

  // Kept from forward to backward. `in` is the block's input; the other two rows of names follow the data.
  Matrix<T> in, normed_in, middle, normed_middle;
  typename RmsNorm<T>::Saved attention_norm_saved, moe_norm_saved;
  typename Attention<T>::Saved attention_saved;
  typename Moe<T>::Saved moe_saved;

  Status forward(Index sequence, bool training, View<T> out, typename Moe<T>::Scratch& scratch);
  Status backward(Index sequence, double balance, std::int64_t tokens, View<T> dx, Scratch& scratch);
};

template <typename T>
struct Model<T>::Scratch {
  typename Attention<T>::Scratch attention;
  typename Moe<T>::Scratch moe;
  Matrix<T> out, normed, logits;
  Matrix<T> dx, dnormed;
  typename RmsNorm<T>::Saved last_norm;
};

namespace {

Status need(bool good, const char* field, int value, const char* what) {
  if (good) return {};
  return {Code::invalid_argument, fmt::format("model: {} is {}, it must be {}", field, value, what)};
}

template <typename T>
void copy(View<const T> from, View<T> to) {
  for (Index i = 0; i < from.rows; ++i) std::copy_n(from.row(i), from.columns, to.row(i));
}

// The parameters of one block, in the order in which they lie in memory.
template <typename T>
struct BlockIds {
  ParameterId attention_norm, qkv, out, moe_norm, router, shared_gate_up, shared_down;
  std::vector<ParameterId> gate_up, down;

  BlockIds(const ModelShape& shape, int layer, Part experts, Parameters<T>& to) {
    const Index h = shape.hidden;
    const Index width = h / shape.heads;
    const double spread = 1 / std::sqrt(static_cast<double>(h));
    const double residual = std::sqrt(2.0 * shape.layers);  // outputs that are summed 2 L times start smaller
    const auto named = [layer](const char* what) { return fmt::format("layers.{}.{}", layer, what); };
    to.begin_stage();
    attention_norm = to.add({named("attention_norm"), 1, h, Placement::replicated, 0, false});
    qkv = to.add({named("q"), shape.heads * width, h, Placement::replicated, spread});
    to.add({named("k"), shape.kv_heads * width, h, Placement::replicated, spread});
    to.add({named("v"), shape.kv_heads * width, h, Placement::replicated, spread});
    out = to.add({named("attention_out"), h, shape.heads * width, Placement::replicated, spread / residual});
    moe_norm = to.add({named("moe_norm"), 1, h, Placement::replicated, 0, false});
    router = to.add({named("router"), shape.experts, h, Placement::replicated, spread});
    const auto feed_forward = [&](const std::string& name, Index inner, Placement placement) {
      const double spread_inner = 1 / std::sqrt(static_cast<double>(inner));
      const ParameterId first = to.add({name + ".gate", inner, h, placement, spread});
      to.add({name + ".up", inner, h, placement, spread});
      to.add({name + ".down", h, inner, placement, spread_inner / residual});
      return first;
    };
    shared_gate_up =
        shape.shared_inner > 0 ? feed_forward(named("shared"), shape.shared_inner, Placement::replicated) : 0;
    shared_down = shared_gate_up + 2;
    for (std::int64_t e = experts.first; e < experts.first + experts.count; ++e) {
      gate_up.push_back(feed_forward(fmt::format("layers.{}.experts.{}", layer, e), shape.inner, Placement::by_expert));
      down.push_back(gate_up.back() + 2);
    }
  }

  typename Moe<T>::Weights moe_weights(const ModelShape& shape, const Parameters<T>& from) const {
    typename Moe<T>::Weights weights{from[router], {}, {}};
    if (shape.shared_inner > 0) weights.shared.emplace(from.stacked(shared_gate_up, 2), from[shared_down]);
    for (std::size_t e = 0; e < gate_up.size(); ++e)
      weights.experts.emplace_back(from.stacked(gate_up[e], 2), from[down[e]]);
    return weights;
  }
};

}  // namespace

Status check_shape(const ModelShape& s) {
  SLUICE_TRY(need(s.vocabulary >= 2, "vocabulary", s.vocabulary, "at least 2"));
  SLUICE_TRY(need(s.sequence >= 1, "sequence", s.sequence, "at least 1"));
  SLUICE_TRY(need(s.layers >= 1, "layers", s.layers, "at least 1"));
  SLUICE_TRY(need(s.hidden >= 2, "hidden", s.hidden, "at least 2"));
  SLUICE_TRY(need(s.heads >= 1 && s.hidden % s.heads == 0 && s.hidden / s.heads % 2 == 0, "heads", s.heads,
                  "a divisor of hidden that leaves heads of an even width"));
  SLUICE_TRY(need(s.kv_heads >= 1 && s.heads % s.kv_heads == 0, "kv-heads", s.kv_heads, "a divisor of heads"));
  SLUICE_TRY(need(s.experts >= 1, "experts", s.experts, "at least 1"));
  SLUICE_TRY(need(s.top_k >= 1 && s.top_k <= s.experts, "top-k", s.top_k, "between 1 and the number of experts"));
  SLUICE_TRY(need(s.inner >= 1, "inner", s.inner, "at least 1"));
  SLUICE_TRY(need(s.shared_inner >= 0, "shared-inner", s.shared_inner, "0 (no shared expert) or its width"));
  return {};
}

template <typename T>
Model<T>::Model(const ModelShape& shape, Mesh& mesh, std::uint64_t seed)
    : shape_(shape),
      rotary_(shape.sequence, shape.hidden / shape.heads),
      exchange_(mesh.ep(), shape.experts, shape.hidden),
      scratch_(std::make_unique<Scratch>()),
      last_norm_(Weight<T>{}) {
  const Index h = shape.hidden;
  parameters_.begin_stage();
  const ParameterId embedding = parameters_.add({"embedding", shape.vocabulary, h, Placement::replicated, 1});
  std::vector<BlockIds<T>> ids;
  for (int layer = 0; layer < shape.layers; ++layer)
    ids.emplace_back(shape, layer, exchange_.local_experts(), parameters_);
  parameters_.begin_stage();
  const ParameterId norm = parameters_.add({"last_norm", 1, h, Placement::replicated, 0, false});
  const ParameterId output =
      parameters_.add({"output", shape.vocabulary, h, Placement::replicated, 1 / std::sqrt(static_cast<double>(h))});
  parameters_.allocate(seed);

  embedding_ = parameters_[embedding];
  output_ = parameters_[output];
  last_norm_ = RmsNorm<T>(parameters_[norm]);
  const AttentionShape attention{h, shape.heads, shape.kv_heads, h / shape.heads};
  for (const BlockIds<T>& id : ids)
    blocks_.push_back(std::unique_ptr<Block>(
        new Block{RmsNorm<T>(parameters_[id.attention_norm]),
                  Attention<T>(attention, parameters_.stacked(id.qkv, 3), parameters_[id.out], rotary_),
                  RmsNorm<T>(parameters_[id.moe_norm]),
                  Moe<T>(id.moe_weights(shape, parameters_), shape.top_k, exchange_, mesh.dp()),
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  {}}));
}

template <typename T>
Model<T>::~Model() = default;

template <typename T>
Status Model<T>::Block::forward(Index sequence, bool training, View<T> out, typename Moe<T>::Scratch& scratch) {
  const View<T> normed = normed_in.shape(in.rows(), in.columns());
  const View<T> mid = middle.shape(in.rows(), in.columns());
  attention_norm.forward(in, normed, attention_norm_saved);
  copy<T>(in, mid);
  attention.forward(normed, sequence, mid, attention_saved);

  const View<T> normed_mid = normed_middle.shape(in.rows(), in.columns());
  moe_norm.forward(mid, normed_mid, moe_norm_saved);
  copy<T>(mid, out);
  return moe.forward(normed_mid, training, out, moe_saved, scratch);
}

// dx comes as the gradient of the block's output and leaves as that of its input.
template <typename T>
Status Model<T>::Block::backward(Index sequence, double balance, std::int64_t tokens, View<T> dx, Scratch& scratch) {
  const View<T> dnormed = scratch.dnormed.shape(dx.rows, dx.columns);
  zero(dnormed);
  SLUICE_TRY(moe.backward(normed_middle, dx, balance, tokens, dnormed, moe_saved, scratch.moe));
  moe_norm.backward(middle, dnormed, dx, moe_norm_saved);
  zero(dnormed);
  attention.backward(normed_in, sequence, dx, dnormed, attention_saved, scratch.attention);
  attention_norm.backward(in, dnormed, dx, attention_norm_saved);
  return {};
}

// Leaves the last block's output in scratch_->out and its norm in scratch_->normed.
template <typename T>
Status Model<T>::run_blocks(const Batch& batch, bool training) {
  embed<T>(embedding_, batch.inputs, blocks_.front()->in.shape(batch.tokens(), shape_.hidden));
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    Matrix<T>& out = i + 1 < blocks_.size() ? blocks_[i + 1]->in : scratch_->out;
    SLUICE_TRY(blocks_[i]->forward(batch.length, training, out.shape(batch.tokens(), shape_.hidden), scratch_->moe));
  }
  last_norm_.forward(scratch_->out, scratch_->normed.shape(batch.tokens(), shape_.hidden), scratch_->last_norm);
  return {};
}

template <typename T>
Result<double> Model<T>::forward(const Batch& batch, bool training) {
  SLUICE_TRY(run_blocks(batch, training));
  const View<T> logits = scratch_->logits.shape(batch.tokens(), shape_.vocabulary);
  multiply_by_transposed(logits, Into::replace, scratch_->normed, output_.value);
  return cross_entropy(logits, batch.targets);
}

template <typename T>
Status Model<T>::backward(const Batch& batch, std::int64_t tokens, const std::function<void(int)>& stage_done) {
  const View<T> dlogits = scratch_->logits.view();
  const View<T> dx = scratch_->dx.shape(batch.tokens(), shape_.hidden);
  const View<T> dnormed = scratch_->dnormed.shape(batch.tokens(), shape_.hidden);
  cross_entropy_backward(dlogits, batch.targets, static_cast<T>(1.0 / static_cast<double>(tokens)));
  multiply(dnormed, Into::replace, dlogits, output_.value);
  multiply_transposed(output_.gradient, Into::add, dlogits, scratch_->normed);
  zero(dx);
  last_norm_.backward(scratch_->out, dnormed, dx, scratch_->last_norm);
  stage_done(static_cast<int>(blocks_.size()) + 1);

  for (std::size_t i = blocks_.size(); i-- > 0;) {
    SLUICE_TRY(blocks_[i]->backward(batch.length, shape_.balance, tokens, dx, *scratch_));
    stage_done(static_cast<int>(i) + 1);
  }
  embed_backward<T>(embedding_, batch.inputs, dx);
  stage_done(0);
  return {};
}

template <typename T>
double Model<T>::balance_loss(std::int64_t tokens) const {
  double loss = 0;
  for (const auto& block : blocks_) loss += block->moe.balance_loss(block->moe_saved, shape_.balance, tokens);
  return loss;
}

template <typename T>
Result<View<const T>> Model<T>::next_token_logits(const Batch& batch) {
  SLUICE_TRY(run_blocks(batch, false));
  const View<T> logits = scratch_->logits.shape(batch.sequences, shape_.vocabulary);
  const View<const T> last{scratch_->normed.data() + (batch.length - 1) * shape_.hidden, batch.sequences, shape_.hidden,
                           batch.length * shape_.hidden};
  multiply_by_transposed(logits, Into::replace, last, output_.value);
  return View<const T>(logits);
}

template <typename T>
std::vector<std::vector<std::int64_t>> Model<T>::expert_counts() const {
  std::vector<std::vector<std::int64_t>> counts;
  for (const auto& block : blocks_) counts.push_back(block->moe_saved.global_counts);
  return counts;
}

template class Model<float>;
template class Model<double>;

}  // namespace sluice
