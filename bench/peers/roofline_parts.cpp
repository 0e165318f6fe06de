#include "bench/peers/roofline_parts.h"

namespace peers {
namespace {

constexpr std::size_t kLine = 16;  // elements of a cache line

std::vector<Part::At> everywhere(int ranks, std::size_t element, int first = 0) {
  std::vector<Part::At> all;
  for (int rank = first; rank < ranks; ++rank) all.push_back({rank, element});
  return all;
}

// Moves the block of `from` that is meant for `to`.
Part block_part(const std::vector<Work>& works, std::size_t from, std::size_t to) {
  const Work& sender = works[from];
  const Work& receiver = works[to];
  const auto at = [&](std::size_t element) { return Part::At{static_cast<int>(from), element}; };
  const auto into = [&](std::size_t element) { return Part::At{static_cast<int>(to), element}; };
  switch (sender.op) {
    case Op::all_gather: return {{at(0)}, {into(from * sender.block)}, sender.block};
    case Op::all_to_all: return {{at(to * sender.block)}, {into(from * sender.block)}, sender.block};
    case Op::all_to_all_v: return {{at(sender.offsets[to])}, {into(receiver.offsets[from])}, sender.send[to]};
    default: return {{at(0)}, {into(0)}, sender.next() == to ? sender.count : 0};
  }
}

}  // namespace

Slice slice_of(std::size_t count, std::size_t index, std::size_t parts) {
  const auto cut = [&](std::size_t i) { return i == parts ? count : count * i / parts / kLine * kLine; };
  return {cut(index), cut(index + 1) - cut(index)};
}

std::vector<Part> parts_of(const std::vector<Work>& works, int rank, Way way) {
  const Work& work = works[static_cast<std::size_t>(rank)];
  const int ranks = work.place.ranks;
  const Slice slice = slice_of(work.count, static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks));
  switch (work.op) {
    case Op::all_reduce:
      if (way == Way::pull) return {{everywhere(ranks, 0), {{rank, 0}}, work.count}};
      return {{everywhere(ranks, slice.begin), everywhere(ranks, slice.begin), slice.count}};
    case Op::reduce_scatter:
      return {{everywhere(ranks, static_cast<std::size_t>(rank) * work.block), {{rank, 0}}, work.block}};
    case Op::broadcast:
      if (way == Way::pull) return {{{{0, 0}}, {{rank, 0}}, rank == 0 ? 0 : work.count}};
      return {{{{0, slice.begin}}, everywhere(ranks, slice.begin, 1), slice.count}};
    default: break;
  }
  std::vector<Part> parts;
  for (std::size_t other = 0; other < works.size(); ++other) {
    const auto mine = static_cast<std::size_t>(rank);
    parts.push_back(way == Way::pull ? block_part(works, other, mine) : block_part(works, mine, other));
  }
  return parts;
}

}  // namespace peers
