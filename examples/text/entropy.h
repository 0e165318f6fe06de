// The entropy of a text's bytes: what a model that knows only frequencies can reach.
#pragma once

#include <cstdint>
#include <span>

namespace sluice::examples {

struct Entropy {
  double unigram = 0;  // nats a byte, H(b): of single bytes
  double bigram = 0;   // nats a byte, H(b | byte before): of a byte whose predecessor is known
};

// The text has at least 2 bytes; with fewer both are 0.
Entropy entropy(std::span<const std::uint8_t> text);

}  // namespace sluice::examples
