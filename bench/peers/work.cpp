#include "bench/peers/work.h"

#include <algorithm>
#include <array>
#include <utility>

namespace peers {
namespace {

constexpr std::array<std::pair<std::string_view, Op>, 7> kNames{{{"all_reduce", Op::all_reduce},
                                                                 {"reduce_scatter", Op::reduce_scatter},
                                                                 {"all_gather", Op::all_gather},
                                                                 {"broadcast", Op::broadcast},
                                                                 {"send_receive", Op::send_receive},
                                                                 {"all_to_all", Op::all_to_all},
                                                                 {"all_to_all_v", Op::all_to_all_v}}};

constexpr float kNothing = -1;  // no value and no sum of values

bool has_blocks(Op op) { return op != Op::all_reduce && op != Op::broadcast && op != Op::send_receive; }

// From `from` to `to`: uneven, and the same in both directions. Over an even number of ranks they add up to ranks * block.
std::size_t uneven(std::size_t block, std::size_t from, std::size_t to) {
  return (from + to) % 2 == 0 ? block - block / 2 : block + block / 2;
}

// Element `at` of the input of `rank`.
float value(std::size_t rank, std::size_t at, std::size_t round) {
  return static_cast<float>((at * 7 + rank * 3 + round * 5) % 16 + 1);
}

float sum(const Work& work, std::size_t at, std::size_t round) {
  float all = 0;
  for (int rank = 0; rank < work.place.ranks; ++rank) all += value(static_cast<std::size_t>(rank), at, round);
  return all;
}

// Where the input of `source` holds the block for this rank.
std::size_t offset_at_source(const Work& work, std::size_t source) {
  std::size_t at = 0;
  for (int to = 0; to < work.place.rank; ++to) at += uneven(work.block, source, static_cast<std::size_t>(to));
  return at;
}

float wanted(const Work& work, std::size_t i, std::size_t round) {
  const auto rank = static_cast<std::size_t>(work.place.rank);
  switch (work.op) {
    case Op::all_reduce: return sum(work, i, round);
    case Op::reduce_scatter: return sum(work, rank * work.block + i, round);
    case Op::all_gather: return value(i / work.block, i % work.block, round);
    case Op::broadcast: return value(0, i, round);
    case Op::send_receive: return value(work.before(), i, round);
    case Op::all_to_all: return value(i / work.block, rank * work.block + i % work.block, round);
    case Op::all_to_all_v: break;
  }
  const auto past = std::upper_bound(work.offsets.begin(), work.offsets.end(), i);
  const auto source = static_cast<std::size_t>(past - work.offsets.begin()) - 1;
  return value(source, offset_at_source(work, source) + i - work.offsets[source], round);
}

}  // namespace

std::optional<Op> parse_op(std::string_view name) {
  for (const auto& [known, op] : kNames)
    if (known == name) return op;
  return std::nullopt;
}

std::size_t Work::in_count() const { return op == Op::all_gather ? block : count; }
std::size_t Work::out_count() const { return op == Op::reduce_scatter ? block : count; }

std::optional<Work> make_work(Op op, std::size_t bytes, Place place) {
  const auto ranks = static_cast<std::size_t>(place.ranks);
  Work work{.op = op, .place = place, .count = bytes / sizeof(float), .block = 0, .send = {}, .offsets = {}};
  if (work.count == 0 || bytes % sizeof(float) != 0) return std::nullopt;
  if (has_blocks(op)) {
    if (work.count % ranks != 0) return std::nullopt;
    work.block = work.count / ranks;
  }
  if (op == Op::all_to_all_v) {
    if (ranks % 2 != 0) return std::nullopt;
    std::size_t at = 0;
    for (std::size_t to = 0; to < ranks; ++to) {
      work.offsets.push_back(at);
      work.send.push_back(uneven(work.block, static_cast<std::size_t>(place.rank), to));
      at += work.send.back();
    }
  }
  return work;
}

void fill(const Work& work, std::size_t round, float* in, float* out) {
  std::fill_n(out, work.out_count(), kNothing);
  const bool in_place = work.op == Op::broadcast;
  if (in_place && work.place.rank != 0) return;
  float* to = in_place ? out : in;
  for (std::size_t i = 0; i < work.in_count(); ++i) to[i] = value(static_cast<std::size_t>(work.place.rank), i, round);
}

std::string fault(const Work& work, std::size_t round, const float* out) {
  for (std::size_t i = 0; i < work.out_count(); ++i)
    if (const float want = wanted(work, i, round); out[i] != want)
      return "rank " + std::to_string(work.place.rank) + ", element " + std::to_string(i) + " of " +
             std::to_string(work.out_count()) + " is " + std::to_string(out[i]) + ", not " + std::to_string(want);
  return {};
}

}  // namespace peers
