// Which bytes an operation moves, without the waiting: parts that each read some inputs once and write some outputs once.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/peers/work.h"

namespace peers {

// Part of a rank's work: places in the buffers of ranks, in elements.
struct Part {
  struct At {
    int rank;
    std::size_t element;
  };
  std::vector<At> from;  // in the inputs; of broadcast, in the output
  std::vector<At> to;    // in the outputs
  std::size_t count = 0;
};

// Who moves what. pull: each rank writes its own output. spread: each rank serves all outputs: with its slice, or from its input.
enum class Way { pull, spread };

// What rank `rank` does of the operation that `works`, by rank, describe. Together they make the whole result.
std::vector<Part> parts_of(const std::vector<Work>& works, int rank, Way way);

// Part `index` of `count` elements in `parts` parts that begin at whole cache lines.
struct Slice {
  std::size_t begin, count;
};
Slice slice_of(std::size_t count, std::size_t index, std::size_t parts);

}  // namespace peers
