#include "tests/support/run_programs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/rng.h"

namespace sluice::test {
namespace {

struct Slot {
  std::vector<float> values;
  std::span<float> described;  // if not empty: read these instead
  std::span<float> offered;    // where to write a result
  bool delivered = false;      // it was written there
};

struct Ring {
  std::vector<Slot> slots;
  std::uint64_t committed = 0;
  std::uint64_t released = 0;
  std::uint64_t described_until = 0;
};

// One element of a rank's order: a step in a slice.
struct Turn {
  std::size_t slice = 0;
  int in_window = 0;
  const ProgramStep* step = nullptr;
};

class Simulation {
 public:
  Simulation(std::span<const Program> programs, const ProgramsRun& run)
      : programs_(programs), run_(run), shape_(programs[0].shape), memory_(shape_, run.numbers) {
    slices_ = longest_chunk() / run.slice_elements + (longest_chunk() % run.slice_elements != 0 ? 1 : 0);
    const std::size_t scratch_elements =
        static_cast<std::size_t>(run.window * shape_.scratch_chunks) * run.slice_elements;
    scratch_.assign(programs.size(), std::vector<float>(scratch_elements, kUntouched));
    for (const Program& program : programs) order_.push_back(order_of(program));
    at_.resize(programs.size());
  }

  Result<Outputs> go() {
    Rng rng(run_.seed);
    std::vector<std::size_t> ready(programs_.size());
    for (std::size_t i = 0; i < ready.size(); ++i) ready[i] = i;
    // A rank that can't go on is set aside until another one moved.
    std::vector<std::size_t> blocked;
    while (!ready.empty()) {
      const std::size_t pick = rng.below(ready.size());
      const std::size_t rank = ready[pick];
      const bool moved = advance(rank);
      if (!fault_.ok()) return fault_.error();
      if (!moved) {
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(pick));
        if (!ended(rank)) blocked.push_back(rank);
      } else {
        ready.insert(ready.end(), blocked.begin(), blocked.end());
        blocked.clear();
      }
    }
    if (!blocked.empty()) return Error{Code::timeout, "rank " + std::to_string(blocked[0]) + " waits for ever"};
    return memory_.outputs();
  }

 private:
  struct Position {
    std::size_t turn = 0;
    std::uint32_t action = 0;
    std::size_t closing = 0;
  };

  std::size_t longest_chunk() const {
    return (run_.numbers.count + static_cast<std::size_t>(shape_.chunks) - 1) / static_cast<std::size_t>(shape_.chunks);
  }
  // The elements of a place in a slice.
  std::span<float> elements(Rank rank, const Operand& operand, const Turn& turn) {
    const Place place{rank, operand.buffer, operand.chunk};
    const std::size_t begin = turn.slice * run_.slice_elements;
    std::size_t chunk = detail::extent_of(shape_, place, run_.numbers.count).end -
                        detail::extent_of(shape_, place, run_.numbers.count).begin;
    const std::size_t count = begin >= chunk ? 0 : std::min(chunk - begin, run_.slice_elements);
    if (operand.buffer == Buffer::scratch) {
      const std::size_t at =
          static_cast<std::size_t>(turn.in_window * shape_.scratch_chunks + operand.chunk) * run_.slice_elements;
      return std::span<float>(scratch_[static_cast<std::size_t>(rank)]).subspan(at, count);
    }
    return count == 0 ? std::span<float>() : memory_.place(place).subspan(begin, count);
  }

  std::vector<Turn> order_of(const Program& program) {
    std::vector<Turn> order;
    for (std::size_t first = 0; first < slices_; first += static_cast<std::size_t>(run_.window)) {
      const int in_group = static_cast<int>(std::min(slices_ - first, static_cast<std::size_t>(run_.window)));
      for (int tick = 0; tick < program.levels + in_group; ++tick)
        for (int j = 0; j < in_group; ++j)
          for (const ProgramStep& step : program.steps) {
            const Turn turn{first + static_cast<std::size_t>(j), j, &step};
            if (step.level == tick - j && !elements(program.rank, step.extent, turn).empty()) order.push_back(turn);
          }
    }
    return order;
  }

  bool ended(std::size_t rank) const {
    return at_[rank].turn == order_[rank].size() && at_[rank].closing == programs_[rank].closing.size();
  }

  Ring& ring(Rank from, Rank to) {
    Ring& found = rings_[{from, to}];
    if (found.slots.empty()) found.slots.resize(static_cast<std::size_t>(run_.slots));
    return found;
  }
  Ring& out_ring(const Program& program, std::uint16_t flow) { return ring(program.rank, program.out_peers[flow]); }
  Ring& in_ring(const Program& program, std::uint16_t flow) { return ring(program.in_peers[flow], program.rank); }
  Slot& slot(Ring& flow, std::uint64_t message) { return flow.slots[message % flow.slots.size()]; }

  // Runs one action. False: it has to wait, or the rank has ended.
  bool advance(std::size_t rank) {
    const Program& program = programs_[rank];
    Position& at = at_[rank];
    if (at.turn == order_[rank].size()) {
      if (at.closing == program.closing.size() || !act(program, {}, program.closing[at.closing])) return false;
      ++at.closing;
      return true;
    }
    const Turn& turn = order_[rank][at.turn];
    if (at.action < turn.step->actions && !act(program, turn, program.actions[turn.step->first_action + at.action]))
      return false;
    if (++at.action >= turn.step->actions) {
      at.action = 0;
      ++at.turn;
    }
    return true;
  }

  bool act(const Program& program, const Turn& turn, const Action& action) {
    switch (action.act) {
      case Act::wait_ready: {
        const Ring& in = in_ring(program, action.flow);
        return in.committed > in.released + action.depth;
      }
      case Act::wait_room: {
        const Ring& out = out_ring(program, action.flow);
        return out.committed < out.released + out.slots.size();
      }
      case Act::wait_released:
        return out_ring(program, action.flow).released >= out_ring(program, action.flow).described_until;
      case Act::combine: combine(program, turn, program.combines[action.index]); return true;
      case Act::commit: ++out_ring(program, action.flow).committed; return true;
      case Act::release: in_ring(program, action.flow).released += std::uint64_t{1} + action.depth; return true;
      case Act::offer: {
        Ring& out = out_ring(program, action.flow);
        slot(out, out.committed) = {};
        slot(out, out.committed).offered = elements(program.rank, program.offers[action.index], turn);
        return true;
      }
    }
    return false;
  }

  void combine(const Program& program, const Turn& turn, const CombineAction& action) {
    const std::size_t count = elements(program.rank, turn.step->extent, turn).size();
    std::vector<std::vector<float>> sources;
    for (const Operand& from : action.from) {
      std::span<float> values;
      if (from.message) {
        Ring& in = in_ring(program, from.flow);
        Slot& read = slot(in, in.released + from.depth);
        if (from.lent && read.delivered) return;
        values = read.described.empty() ? std::span<float>(read.values) : read.described;
      } else {
        values = elements(program.rank, from, turn);
      }
      if (values.size() != count) {
        fault_ = {Code::invalid_argument, "rank " + std::to_string(program.rank) + ": " +
                                              std::to_string(values.size()) + " values where " + std::to_string(count) +
                                              " are expected"};
        return;
      }
      sources.emplace_back(values.begin(), values.end());
      if (from.leaf)
        for (float& value : sources.back()) value *= run_.numbers.leaf_factor;
    }
    std::vector<float> result(count);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<float> summands;
      for (const auto& source : sources) summands.push_back(source[i]);
      result[i] = detail::fold(summands, action.tree) /
                  (action.final && run_.numbers.average ? static_cast<float>(shape_.ranks) : 1.0f);
    }
    for (const Operand& to : action.to) write(program, turn, action, to, result);
  }

  void write(const Program& program, const Turn& turn, const CombineAction& action, const Operand& to,
             const std::vector<float>& result) {
    std::vector<float> kept;
    for (const float value : result) kept.push_back(detail::rounded(value, to.buffer, run_.numbers));
    if (!to.message) {
      std::copy(kept.begin(), kept.end(), elements(program.rank, to, turn).begin());
      return;
    }
    Ring& out = out_ring(program, to.flow);
    Slot& written = slot(out, out.committed);
    written = {};
    written.values = kept;
    if (!run_.direct) return;
    if (to.lent) {
      Ring& in = in_ring(program, to.offer);
      const std::span<float> place = slot(in, in.released + to.depth).offered;
      std::copy_n(kept.begin(), std::min(kept.size(), place.size()), place.begin());
      written.delivered = true;
    }
    if (!to.direct) return;
    written.described = elements(program.rank, action.from[0], turn);
    out.described_until = out.committed + 1;
  }

  std::span<const Program> programs_;
  const ProgramsRun& run_;
  ScheduleShape shape_;
  detail::Memory memory_;
  std::size_t slices_ = 0;
  std::vector<std::vector<Turn>> order_;
  std::vector<std::vector<float>> scratch_;
  std::vector<Position> at_;
  std::map<std::pair<Rank, Rank>, Ring> rings_;
  Status fault_;
};

}  // namespace

Result<Outputs> run_programs(std::span<const Program> programs, const ProgramsRun& run) {
  return Simulation(programs, run).go();
}

}  // namespace sluice::test
