#include "examples/train_moe/generate.h"

#include <algorithm>
#include <cmath>

#include "base/rng.h"

namespace sluice::examples {
namespace {

// The last bytes of the text as one sequence; at other ranks a batch without a sequence.
Batch context(const std::string& text, Index longest, bool has_text) {
  Batch batch;
  batch.length = std::min(longest, static_cast<Index>(text.size()));
  batch.sequences = has_text ? 1 : 0;
  if (!has_text) return batch;
  for (std::size_t i = text.size() - static_cast<std::size_t>(batch.length); i < text.size(); ++i)
    batch.inputs.push_back(static_cast<unsigned char>(text[i]));
  return batch;
}

int draw(const float* logits, int count, double temperature, double chance) {
  const double most = *std::max_element(logits, logits + count);
  std::vector<double> weight(static_cast<std::size_t>(count));
  double sum = 0;
  for (int i = 0; i < count; ++i)
    sum += weight[static_cast<std::size_t>(i)] = std::exp((logits[i] - most) / temperature);
  double left = chance * sum;
  for (int i = 0; i < count; ++i)
    if ((left -= weight[static_cast<std::size_t>(i)]) < 0) return i;
  return count - 1;
}

}  // namespace

Result<std::string> generate(Model<float>& model, int dp_rank, const GenerateOptions& options) {
  Rng rng(options.seed);
  std::string text = options.prompt;
  for (int i = 0; i < options.bytes; ++i) {
    SLUICE_TRY_ASSIGN(const View<const float> logits,
                      model.next_token_logits(context(text, model.shape().sequence, dp_rank == 0)));
    const double chance = rng.uniform();
    // Other ranks keep a text of the same length, so that all run as many rounds of the same shape.
    text += dp_rank == 0 ? static_cast<char>(draw(logits.data, model.shape().vocabulary, options.temperature, chance))
                         : ' ';
  }
  return dp_rank == 0 ? text.substr(options.prompt.size()) : std::string();
}

std::string printable(const std::string& text) {
  std::string result = text;
  for (char& c : result)
    if (c != '\n' && (c < ' ' || c > '~')) c = '?';
  return result;
}

}  // namespace sluice::examples
