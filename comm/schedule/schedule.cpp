#include "comm/schedule/schedule.h"

#include <array>

namespace sluice {
namespace {

constexpr std::array<std::string_view, kCollectives> kNames{"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                                            "reduce",     "gather",         "scatter",    "all_to_all"};

constexpr std::array<Collective, kCollectives> kAll = [] {
  std::array<Collective, kCollectives> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Collective>(i);
  return all;
}();

}  // namespace

std::string_view name(Collective collective) { return kNames.at(static_cast<std::size_t>(collective)); }

std::optional<Collective> parse_collective(std::string_view word) {
  for (const Collective one : kAll)
    if (name(one) == word) return one;
  return std::nullopt;
}

std::span<const Collective> all_collectives() { return kAll; }

bool is_reduction(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::reduce;
}

bool is_rooted(Collective collective) {
  return collective == Collective::broadcast || collective == Collective::reduce || collective == Collective::gather ||
         collective == Collective::scatter;
}

std::string_view name(Buffer buffer) {
  switch (buffer) {
    case Buffer::input: return "in";
    case Buffer::output: return "out";
    case Buffer::scratch: return "scratch";
  }
  return "unknown";
}

int ScheduleShape::input_chunks() const {
  switch (collective) {
    case Collective::reduce_scatter:
    case Collective::scatter:
    case Collective::all_to_all: return ranks * chunks;
    default: return chunks;
  }
}

int ScheduleShape::output_chunks() const {
  switch (collective) {
    case Collective::all_gather:
    case Collective::gather:
    case Collective::all_to_all: return ranks * chunks;
    default: return chunks;
  }
}

bool ScheduleShape::has_input(Rank rank) const {
  const bool at_root_only = collective == Collective::broadcast || collective == Collective::scatter;
  return !at_root_only || rank == root;
}

bool ScheduleShape::has_output(Rank rank) const {
  const bool at_root_only = collective == Collective::reduce || collective == Collective::gather;
  return !at_root_only || rank == root;
}

}  // namespace sluice
