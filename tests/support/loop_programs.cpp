#include "tests/support/loop_programs.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "comm/executor/program_run.h"
#include "transport/loop/loop_world.h"

namespace sluice::test {
namespace {

constexpr FlowId kFlow{1, 0, 0};
constexpr int kStepsPerTurn = 7;

struct RankOnLoop {
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::vector<std::byte> scratch;
  std::vector<OutFlow*> out_flows;
  std::vector<InFlow*> in_flows;
  BoundCode code;
  ProgramRun run;
  bool done = false;
};

std::size_t buffer_bytes(int chunks, const ScheduleShape& shape, std::size_t count) {
  return static_cast<std::size_t>(chunks / shape.chunks) * count * element_bytes(DataType::bfloat16);
}

LoopOptions options_of(const ProgramsRun& run) {
  LoopOptions options;
  options.seed = run.seed;
  options.windows = run.direct;
  return options;
}

class LoopRun {
 public:
  LoopRun(std::span<const Program> programs, const ProgramsRun& run)
      : programs_(programs), run_(run), shape_(programs[0].shape), world_(shape_.ranks, options_of(run)) {}

  Result<Outputs> go() {
    ranks_.resize(programs_.size());
    for (Rank rank = 0; rank < shape_.ranks; ++rank) SLUICE_TRY(begin(rank));
    while (true) {
      SLUICE_TRY_ASSIGN(const bool moved, turn());
      if (std::all_of(ranks_.begin(), ranks_.end(), [](const RankOnLoop& one) { return one.done; })) break;
      if (!moved && world_.pending() == 0) return Error{Code::timeout, "no rank can go on"};
      world_.advance(std::chrono::microseconds(10));
    }
    return outputs();
  }

 private:
  RankOnLoop& at(Rank rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  Status begin(Rank rank) {
    const Program& program = programs_[static_cast<std::size_t>(rank)];
    RankOnLoop& one = at(rank);
    Transport& transport = world_.transport(rank);
    place_buffers(rank);
    const std::size_t slot_bytes = (run_.slice_elements * sizeof(float) + kCacheLine - 1) / kCacheLine * kCacheLine;
    const RingShape ring{static_cast<std::uint32_t>(run_.slots), static_cast<std::uint32_t>(slot_bytes)};
    for (const Rank peer : program.out_peers) {
      SLUICE_TRY_ASSIGN(OutFlow * flow, transport.open_out(peer, kFlow, ring));
      one.out_flows.push_back(flow);
    }
    for (const Rank peer : program.in_peers) {
      SLUICE_TRY_ASSIGN(InFlow * flow, transport.open_in(peer, kFlow, ring));
      one.in_flows.push_back(flow);
    }
    CodeSettings settings;
    settings.rule.type = DataType::bfloat16;
    settings.rule.ranks = shape_.ranks;
    settings.wide_scratch = run_.numbers.order == Order::canonical;
    settings.slice_elements = run_.slice_elements;
    settings.window = run_.window;
    one.code.bind(program, Layout::even(shape_, run_.numbers.count, element_bytes(DataType::bfloat16)), settings);
    RunBinding binding;
    binding.describe_from = 1024;
    binding.code = &one.code;
    binding.in = one.in;
    binding.out = one.out;
    binding.digest = 0x51c3;
    binding.out_flows = one.out_flows;
    binding.in_flows = one.in_flows;
    one.scratch.resize(one.code.scratch_bytes());
    binding.scratch = one.scratch.data();
    one.run.bind(binding);
    return {};
  }

  // Memory in a window if there are windows.
  std::byte* memory(Rank rank, std::size_t bytes) {
    if (void* window = world_.transport(rank).allocate_window(std::max<std::size_t>(bytes, 1)))
      return static_cast<std::byte*>(window);
    return plain_.emplace_back(std::max<std::size_t>(bytes, 1)).data();
  }

  void place_buffers(Rank rank) {
    RankOnLoop& one = at(rank);
    const std::size_t in_bytes =
        shape_.has_input(rank) ? buffer_bytes(shape_.input_chunks(), shape_, run_.numbers.count) : 0;
    const std::size_t out_bytes =
        shape_.has_output(rank) ? buffer_bytes(shape_.output_chunks(), shape_, run_.numbers.count) : 0;
    if (run_.numbers.in_place && in_bytes != 0 && out_bytes != 0) {
      std::byte* both = memory(rank, std::max(in_bytes, out_bytes));
      const std::size_t mine = static_cast<std::size_t>(rank);
      one.in = both + (in_bytes < out_bytes ? mine * in_bytes : 0);
      one.out = both + (out_bytes < in_bytes ? mine * out_bytes : 0);
    } else {
      one.in = memory(rank, in_bytes);
      one.out = memory(rank, out_bytes);
    }
    const std::vector<float> values = detail::input_of(shape_, run_.numbers, rank);
    for (std::size_t i = 0; i < values.size(); ++i)
      from_float(DataType::bfloat16, values[i], one.in + i * element_bytes(DataType::bfloat16));
  }

  // Every rank once. True: something moved.
  Result<bool> turn() {
    bool moved = false;
    for (Rank rank = 0; rank < shape_.ranks; ++rank) {
      RankOnLoop& one = at(rank);
      moved = world_.transport(rank).progress() > 0 || moved;
      if (one.done) continue;
      const std::uint64_t before = one.run.progress_mark();
      const Advance advance = one.run.advance(kStepsPerTurn);
      if (advance == Advance::failed)
        return Error{Code::mismatch, "rank " + std::to_string(rank) + " got a message that it did not expect"};
      one.done = advance == Advance::done;
      moved = moved || one.done || one.run.progress_mark() != before;
      moved = world_.transport(rank).progress() > 0 || moved;
    }
    return moved;
  }

  Outputs outputs() {
    Outputs all(ranks_.size());
    for (Rank rank = 0; rank < shape_.ranks; ++rank) {
      if (!shape_.has_output(rank)) continue;
      const std::size_t values = static_cast<std::size_t>(shape_.output_chunks() / shape_.chunks) * run_.numbers.count;
      for (std::size_t i = 0; i < values; ++i)
        all[static_cast<std::size_t>(rank)].push_back(
            to_float(DataType::bfloat16, at(rank).out + i * element_bytes(DataType::bfloat16)));
    }
    return all;
  }

  std::span<const Program> programs_;
  const ProgramsRun& run_;
  ScheduleShape shape_;
  LoopWorld world_;
  std::deque<std::vector<std::byte>> plain_;
  std::vector<RankOnLoop> ranks_;
};

}  // namespace

Result<Outputs> run_programs_on_loop(std::span<const Program> programs, const ProgramsRun& run) {
  return LoopRun(programs, run).go();
}

}  // namespace sluice::test
