#include "comm/verify/post_condition.h"

#include <string>

namespace sluice {
namespace {

// The input whose value, or the chunk whose sum, belongs at an output place. A sum has rank -1.
Place expected(const ScheduleShape& shape, Rank rank, int chunk) {
  const int block = chunk / shape.chunks;
  const int part = chunk % shape.chunks;
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::reduce: return {-1, Buffer::input, chunk};
    case Collective::reduce_scatter: return {-1, Buffer::input, rank * shape.chunks + chunk};
    case Collective::all_gather:
    case Collective::gather: return {block, Buffer::input, part};
    case Collective::broadcast: return {shape.root, Buffer::input, chunk};
    case Collective::scatter: return {shape.root, Buffer::input, rank * shape.chunks + chunk};
    case Collective::all_to_all: return {block, Buffer::input, rank * shape.chunks + part};
  }
  return {};
}

std::string describe(const Place& want) {
  return want.rank >= 0 ? print(want) : "the sum of in." + std::to_string(want.chunk) + " of all ranks";
}

}  // namespace

Status check_post_condition(const ScheduleShape& shape, const Symbols& symbols,
                            const std::function<Symbol(Rank, int)>& at, int parts, OrderClass& order) {
  order = OrderClass::canonical;
  for (int chunk = 0; chunk < shape.output_chunks(); ++chunk) {
    if (chunk % shape.chunks >= parts) continue;
    Rank first = -1;  // the first rank with this chunk
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      if (!shape.has_output(rank)) continue;
      const Symbol value = at(rank, chunk);
      const Place want = expected(shape, rank, chunk);
      const bool right =
          want.rank >= 0 ? symbols.is_leaf(value, want.rank, want.chunk) : symbols.is_whole_sum(value, want.chunk);
      const std::string place = right ? "" : print(Place{rank, Buffer::output, chunk});
      if (!right)
        return {Code::invalid_argument,
                place + " ends with " + symbols.describe(value) + ", not with " + describe(want)};
      if (want.rank >= 0) continue;
      if (!symbols.is_canonical(value)) order = OrderClass::fixed;
      if (shape.collective != Collective::all_reduce) continue;
      if (first < 0) first = rank;
      const Symbol other = at(first, chunk);
      if (value != other && !(symbols.is_canonical(value) && symbols.is_canonical(other)))
        return {Code::invalid_argument, "r" + std::to_string(first) + " and r" + std::to_string(rank) + " sum chunk " +
                                            std::to_string(chunk) +
                                            " in different orders: their results could differ in the last bits"};
    }
  }
  return {};
}

}  // namespace sluice
