// What a piece of memory must hold: painted before an operation, compared after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "tools/perf/values.h"

namespace sluice::tools {

// `count` elements at byte `at`: what `source` gave from its element `source_at` on, or the reduction over all ranks.
struct Layer {
  std::size_t at = 0;
  std::size_t count = 0;
  std::optional<Rank> source;
  std::size_t source_at = 0;
};

// Later layers cover earlier ones; what no layer covers holds kUntouched. Layers lie at element borders of one grid.
struct Image {
  std::size_t bytes = 0;
  std::vector<Layer> layers;
};
inline constexpr std::byte kUntouched{0xa5};

struct Differences {
  std::uint64_t wrong = 0;  // elements, or bytes outside of any layer
  std::string first;        // "element 17 (received from rank 2) is 0x3f80, expected 0x4000"
};

void paint(const ValueRule& rule, const Image& image, std::byte* memory);
Differences compare(const ValueRule& rule, const Image& image, const std::byte* memory);

}  // namespace sluice::tools
