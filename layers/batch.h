// What a rank computes on in one step: its share of the global batch, as whole sequences.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "layers/compute/matrix.h"

namespace sluice {

inline constexpr std::int32_t kNotCounted = -1;  // a target that is no part of the loss

struct Batch {
  Index sequences = 0;
  Index length = 0;                   // of every sequence; inputs and targets have sequences * length tokens
  std::vector<std::int32_t> inputs;   // 0 <= token < vocabulary
  std::vector<std::int32_t> targets;  // the token that follows, or kNotCounted

  Index tokens() const { return sequences * length; }
  std::int64_t counted() const { return tokens() - std::count(targets.begin(), targets.end(), kNotCounted); }
};

}  // namespace sluice
