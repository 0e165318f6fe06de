#include "tests/support/run_schedule.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/rng.h"

namespace sluice::test {
namespace detail {

namespace {

float to_bfloat16(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  const std::uint32_t half = 0x7fffu + ((bits >> 16) & 1u);  // to nearest, ties to even; no NaN comes here
  bits = (bits + half) & 0xffff0000u;
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

bool has_blocks(const ScheduleShape& shape) {
  return shape.collective != Collective::all_reduce && shape.collective != Collective::broadcast &&
         shape.collective != Collective::reduce;
}

}  // namespace

Extent extent_of(const ScheduleShape& shape, Place place, std::size_t count) {
  const std::size_t parts = static_cast<std::size_t>(shape.chunks);
  const std::size_t chunk = static_cast<std::size_t>(place.chunk);
  const std::size_t part = chunk % parts;
  // Scratch chunks lie one after another, each with room for the longest part.
  if (place.buffer == Buffer::scratch) {
    const std::size_t begin = chunk * (count + 1);
    return {begin, begin + (part + 1) * count / parts - part * count / parts};
  }
  const std::size_t block = has_blocks(shape) ? chunk / parts * count : 0;
  return {block + part * count / parts, block + (part + 1) * count / parts};
}

std::vector<float> input_of(const ScheduleShape& shape, const ScheduleRun& run, Rank rank) {
  if (!shape.has_input(rank)) return {};
  std::vector<float> values(static_cast<std::size_t>(shape.input_chunks() / shape.chunks) * run.count);
  Rng rng(mix64(run.seed) ^ static_cast<std::uint64_t>(rank));
  for (float& value : values) {
    value = static_cast<float>(static_cast<int>(rng.below(15)) - 7);
    if (run.numbers == Numbers::order_sensitive)
      value = to_bfloat16(std::ldexp(static_cast<float>(rng.uniform() + 0.5), static_cast<int>(rng.below(12)) - 6) *
                          (rng.chance(0.5) ? 1.0f : -1.0f));
  }
  return values;
}

float rounded(float value, Buffer buffer, const ScheduleRun& run) {
  const bool keeps = buffer == Buffer::scratch && run.order == Order::canonical;
  return run.numbers == Numbers::whole || keeps ? value : to_bfloat16(value);
}

float fold(const std::vector<float>& values, Tree tree) {
  if (values.size() == 1) return values[0];
  std::size_t left = values.size() - 1;
  if (tree == Tree::canonical)
    for (left = 1; 2 * left < values.size();) left *= 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(left);
  return fold({values.begin(), middle}, tree) + fold({middle, values.end()}, tree);
}

Memory::Memory(const ScheduleShape& shape, const ScheduleRun& run) : shape_(shape), run_(run) {
  for (Rank rank = 0; rank < shape.ranks; ++rank) {
    in_.push_back(input_of(shape, run, rank));
    out_.emplace_back(
        shape.has_output(rank) ? static_cast<std::size_t>(shape.output_chunks() / shape.chunks) * run.count : 0,
        kUntouched);
    scratch_.emplace_back(static_cast<std::size_t>(shape.scratch_chunks) * (run.count + 1), kUntouched);
    // In place the larger buffer holds both; the smaller one is this rank's block of it.
    auto& in = in_.back();
    auto& out = out_.back();
    if (run.in_place && !in.empty() && out.size() > in.size())
      std::copy(in.begin(), in.end(), out.begin() + rank * static_cast<std::ptrdiff_t>(in.size()));
  }
}

std::span<float> Memory::place(Place place) {
  const Extent extent = extent_of(shape_, place, run_.count);
  const std::size_t rank = static_cast<std::size_t>(place.rank);
  const auto within = [&](std::vector<float>& values, std::size_t offset) {
    return std::span<float>(values).subspan(offset + extent.begin, extent.end - extent.begin);
  };
  if (place.buffer == Buffer::scratch) return within(scratch_[rank], 0);
  std::vector<float>& own = place.buffer == Buffer::input ? in_[rank] : out_[rank];
  std::vector<float>& other = place.buffer == Buffer::input ? out_[rank] : in_[rank];
  const bool shared = run_.in_place && shape_.has_input(place.rank) && shape_.has_output(place.rank);
  if (shared && other.size() > own.size()) return within(other, rank * own.size());
  return within(shared && other.size() == own.size() ? in_[rank] : own, 0);
}

Outputs Memory::outputs() {
  Outputs all(out_.size());
  for (Rank rank = 0; rank < shape_.ranks; ++rank)
    for (int chunk = 0; shape_.has_output(rank) && chunk < shape_.output_chunks(); ++chunk) {
      const std::span<float> part = place({rank, Buffer::output, chunk});
      auto& all_of_rank = all[static_cast<std::size_t>(rank)];
      all_of_rank.insert(all_of_rank.end(), part.begin(), part.end());
    }
  return all;
}

}  // namespace detail

namespace {

using detail::Memory;

std::vector<float> value_of(const Step& step, Memory& memory, const ScheduleShape& shape, const ScheduleRun& run) {
  std::vector<std::vector<float>> sources;
  for (std::size_t i = 0; i < step.from.size(); ++i) {
    const std::span<float> source = memory.place(step.from[i]);
    sources.emplace_back(source.begin(), source.end());
    if (i < step.leaf.size() && step.leaf[i])
      for (float& value : sources.back()) value *= run.leaf_factor;
  }
  std::vector<float> result;
  for (std::size_t element = 0; element < sources[0].size(); ++element) {
    std::vector<float> summands;
    for (const auto& source : sources) summands.push_back(element < source.size() ? source[element] : kUntouched);
    result.push_back(detail::fold(summands, step.tree));
    if (step.final && run.average) result.back() /= static_cast<float>(shape.ranks);
  }
  return result;
}

struct Moment {
  std::size_t begin = 0;
  std::size_t end = 0;
  int level = 0;
};

std::vector<Moment> moments_of(const Schedule& schedule) {
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    if (i > 0 && schedule.steps[i].moment == schedule.steps[i - 1].moment)
      moments.back().end = i + 1;
    else
      moments.push_back({i, i + 1, schedule.steps[i].level});
  }
  return moments;
}

}  // namespace

Outputs run_schedule(const Schedule& schedule, const ScheduleRun& run) {
  Memory memory(schedule.shape, run);
  std::vector<Moment> moments = moments_of(schedule);
  if (run.shuffle) {
    Rng rng(*run.shuffle);
    for (std::size_t i = moments.size(); i > 1; --i) std::swap(moments[i - 1], moments[rng.below(i)]);
    std::stable_sort(moments.begin(), moments.end(),
                     [](const Moment& a, const Moment& b) { return a.level < b.level; });
  }
  for (const Moment& moment : moments) {
    std::vector<std::vector<float>> results;
    for (std::size_t i = moment.begin; i < moment.end; ++i)
      results.push_back(value_of(schedule.steps[i], memory, schedule.shape, run));
    for (std::size_t i = moment.begin; i < moment.end; ++i)
      for (const Place& to : schedule.steps[i].to) {
        const std::span<float> target = memory.place(to);
        const std::vector<float>& values = results[i - moment.begin];
        for (std::size_t k = 0; k < std::min(values.size(), target.size()); ++k)
          target[k] = detail::rounded(values[k], to.buffer, run);
      }
  }
  return memory.outputs();
}

Outputs expected_outputs(const ScheduleShape& shape, const ScheduleRun& run) {
  std::vector<std::vector<float>> in;
  for (Rank rank = 0; rank < shape.ranks; ++rank) in.push_back(detail::input_of(shape, run, rank));
  const auto root = static_cast<std::size_t>(shape.root);
  const auto block = [&](std::size_t of, std::size_t which) {
    const auto begin = in[of].begin() + static_cast<std::ptrdiff_t>(which * run.count);
    return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(run.count));
  };
  const auto sum = [&](std::size_t which) {
    std::vector<float> total;
    for (std::size_t i = which * run.count; i < (which + 1) * run.count; ++i) {
      std::vector<float> summands;
      for (const auto& values : in) summands.push_back(values[i] * run.leaf_factor);
      const float folded =
          detail::fold(summands, Tree::canonical) / (run.average ? static_cast<float>(shape.ranks) : 1.0f);
      total.push_back(detail::rounded(folded, Buffer::output, run));
    }
    return total;
  };

  Outputs out(in.size());
  for (std::size_t rank = 0; rank < in.size(); ++rank) {
    if (!shape.has_output(static_cast<Rank>(rank))) continue;
    switch (shape.collective) {
      case Collective::all_reduce:
      case Collective::reduce: out[rank] = sum(0); break;
      case Collective::reduce_scatter: out[rank] = sum(rank); break;
      case Collective::broadcast: out[rank] = block(root, 0); break;
      case Collective::scatter: out[rank] = block(root, rank); break;
      case Collective::all_gather:
      case Collective::gather:
      case Collective::all_to_all:
        for (std::size_t from = 0; from < in.size(); ++from) {
          const std::vector<float> part = block(from, shape.collective == Collective::all_to_all ? rank : 0);
          out[rank].insert(out[rank].end(), part.begin(), part.end());
        }
        break;
    }
  }
  return out;
}

}  // namespace sluice::test
