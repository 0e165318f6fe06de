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

}  // namespace detail

namespace {

class Memory {
 public:
  Memory(const ScheduleShape& shape, const ScheduleRun& run) : shape_(shape), run_(run) {
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      in_.push_back(detail::input_of(shape, run, rank));
      out_.emplace_back(
          shape.has_output(rank) ? static_cast<std::size_t>(shape.output_chunks() / shape.chunks) * run.count : 0,
          kUntouched);
      scratch_.emplace_back(static_cast<std::size_t>(shape.scratch_chunks) * (run.count + 1), kUntouched);
      if (run.in_place) merge(rank);
    }
  }

  std::vector<float> read(Place place) {
    const auto [values, extent] = find(place);
    return {values->begin() + static_cast<std::ptrdiff_t>(extent.begin),
            values->begin() + static_cast<std::ptrdiff_t>(extent.end)};
  }
  void write(Place place, const std::vector<float>& values) {
    const auto [target, extent] = find(place);
    for (std::size_t i = 0; i < values.size() && extent.begin + i < extent.end; ++i)
      (*target)[extent.begin + i] = detail::rounded(values[i], place.buffer, run_);
  }
  // The outputs, also of ranks whose output lies in their input.
  Outputs outputs() {
    Outputs all(out_.size());
    for (Rank rank = 0; rank < shape_.ranks; ++rank)
      for (int chunk = 0; shape_.has_output(rank) && chunk < shape_.output_chunks(); ++chunk) {
        const std::vector<float> part = read({rank, Buffer::output, chunk});
        auto& all_of_rank = all[static_cast<std::size_t>(rank)];
        all_of_rank.insert(all_of_rank.end(), part.begin(), part.end());
      }
    return all;
  }

 private:
  // NCCL's in-place forms: the smaller buffer is a block of the larger one.
  void merge(Rank rank) {
    auto& in = in_[static_cast<std::size_t>(rank)];
    auto& out = out_[static_cast<std::size_t>(rank)];
    if (in.empty() || out.empty()) return;
    if (out.size() > in.size())
      std::copy(in.begin(), in.end(), out.begin() + rank * static_cast<std::ptrdiff_t>(in.size()));
  }
  // Where a place lies: in place, the larger buffer holds both.
  std::pair<std::vector<float>*, detail::Extent> find(Place place) {
    detail::Extent extent = detail::extent_of(shape_, place, run_.count);
    const std::size_t rank = static_cast<std::size_t>(place.rank);
    if (place.buffer == Buffer::scratch) return {&scratch_[rank], extent};
    std::vector<float>* values = place.buffer == Buffer::input ? &in_[rank] : &out_[rank];
    std::vector<float>* other = place.buffer == Buffer::input ? &out_[rank] : &in_[rank];
    if (!run_.in_place || !shape_.has_input(place.rank) || !shape_.has_output(place.rank)) return {values, extent};
    if (other->size() > values->size()) {
      const std::size_t offset = rank * values->size();
      return {other, {extent.begin + offset, extent.end + offset}};
    }
    if (other->size() == values->size()) return {&in_[rank], extent};
    return {values, extent};
  }

  const ScheduleShape& shape_;
  const ScheduleRun& run_;
  std::vector<std::vector<float>> in_;
  std::vector<std::vector<float>> out_;
  std::vector<std::vector<float>> scratch_;
};

std::vector<float> value_of(const Step& step, Memory& memory, const ScheduleShape& shape, const ScheduleRun& run) {
  std::vector<std::vector<float>> sources;
  for (std::size_t i = 0; i < step.from.size(); ++i) {
    sources.push_back(memory.read(step.from[i]));
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
      for (const Place& to : schedule.steps[i].to) memory.write(to, results[i - moment.begin]);
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
