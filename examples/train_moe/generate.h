// Text from the model, byte by byte. Rank 0 has the text; the other ranks take part without a token, because they may own the
// experts that its tokens visit.
#pragma once

#include <cstdint>
#include <string>

#include "layers/model.h"

namespace sluice::examples {

struct GenerateOptions {
  std::string prompt = "\n";  // at least one byte
  int bytes = 400;
  double temperature = 0.8;
  std::uint64_t seed = 1;
};

// Collective over the mesh. The bytes after the prompt at rank 0; elsewhere an empty text. A function of the weights and the
// options alone.
Result<std::string> generate(Model<float>& model, int dp_rank, const GenerateOptions& options);

// Bytes that a terminal should not see become '?'.
std::string printable(const std::string& text);

}  // namespace sluice::examples
