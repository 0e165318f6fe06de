// The loops of the roofline: sum or copy from n sources to m targets in one pass.
#pragma once

#include <cstddef>
#include <span>

namespace peers {

enum class Loop {
  regular,    // as the compiler makes it of plain C++; a copy is memcpy
  vector,     // the widest vectors of this machine
  streaming,  // the same with non-temporal stores
};
inline constexpr Loop kLoops[] = {Loop::regular, Loop::vector, Loop::streaming};

struct Move {
  std::span<const float* const> sources;  // one: a copy
  std::span<float* const> targets;        // one or more, of any alignment
  std::size_t count = 0;
};

// Every target gets the sum of all sources, element by element, added in their order.
void move(Loop loop, const Move& one);

// targets[0][i] = sources[0][i] + 3 * sources[1][i], which only STREAM asks for.
void triad(Loop loop, const Move& one);

}  // namespace peers
