#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "comm/lower/program.h"
#include "comm/schedule/places.h"

namespace sluice {
namespace {

// In a slice's level: what a rank sends for others to execute or offers them, what it executes, and what an executor sent it.
enum Phase : std::uint8_t { kSend = 0, kExecute = 1, kReceive = 2 };

class Lowering {
 public:
  Lowering(const Schedule& schedule, Rank rank, const LowerOptions& options) : schedule_(schedule), options_(options) {
    program_.shape = schedule.shape;
    program_.rank = rank;
    program_.in_place = options.in_place;
    program_.levels = schedule.levels;
  }

  Program run() && {
    note_writes();
    for (std::size_t i = 0; i < schedule_.steps.size(); ++i) lower_step(static_cast<int>(i), schedule_.steps[i]);
    sort_steps();
    close_direct_flows();
    program_.credits = credits_;
    return std::move(program_);
  }

 private:
  Place place_name(const Place& place) const {
    return program_.in_place ? in_place_name(schedule_.shape, place) : place;
  }

  // A copy of a place onto itself, as an all-gather in place does with its own block.
  bool is_nothing(const Step& step) const {
    return !step.final && step.from.size() == 1 && step.to.size() == 1 &&
           place_name(step.from[0]) == place_name(step.to[0]);
  }

  void note_writes() {
    for (const Step& step : schedule_.steps)
      if (!is_nothing(step))
        for (const Place& to : step.to)
          if (to.rank == program_.rank) {
            const Step*& last = last_write_[place_name(to)];
            if (last == nullptr || last->level < step.level) last = &step;
          }
  }

  // A result of a step that this rank does not execute.
  bool comes_back(const Step& step) const {
    const auto mine = [this](const Place& to) { return to.rank == program_.rank; };
    return std::any_of(step.to.begin(), step.to.end(), mine);
  }

  // May the executor write its result for `to` where it lies? Both ends see the same. Scratch lies in no window.
  bool is_lent(const Step& step, const Place& to) const {
    const Rank peer = step.executor == program_.rank ? to.rank : step.executor;
    return step.alone && to.buffer == Buffer::output && !options_.windows.empty() &&
           options_.windows[static_cast<std::size_t>(peer)];
  }

  // May the receiver read `place`, sent for `step`, where it lies? Scratch is used again by the next group of slices. A step that
  // writes where it reads has read before it writes, if it writes there itself.
  bool may_describe(const Step& step, const Place& place) const {
    if (place.buffer == Buffer::scratch) return false;
    const auto written = last_write_.find(place_name(place));
    if (written == last_write_.end() || written->second->level < step.level) return true;
    const auto is_it = [&](const Place& to) { return place_name(to) == place_name(place) && is_lent(step, to); };
    return written->second == &step && std::any_of(step.to.begin(), step.to.end(), is_it);
  }

  void lower_step(int index, const Step& step) {
    if (is_nothing(step)) return;
    if (step.executor == program_.rank) return execute(index, step);
    for (const Place& from : step.from)
      if (from.rank == program_.rank) send(index, step, from);
    for (std::size_t i = 0; i < step.to.size(); ++i)
      if (step.to[i].rank == program_.rank) receive(index, step, i);
  }

  void send(int index, const Step& step, const Place& from) {
    begin(index, step, kSend, from);
    const std::uint16_t flow = flow_to(step.executor, step.level);
    add({Act::wait_room, flow, 0, 0});
    Operand target = message(from.buffer, flow, 0);
    target.direct = may_describe(step, from);
    if (target.direct && !comes_back(step)) described_.push_back(flow);
    add_combine({{local(from)}, {target}, Tree::chain, false});
    add({Act::commit, flow, 0, 0});
  }

  void receive(int index, const Step& step, std::size_t target) {
    const Place& to = step.to[target];
    Operand result = message(to.buffer, flow_from(step.executor), 0);
    result.lent = is_lent(step, to);
    if (result.lent) {
      result.offer = flow_to(step.executor, step.level);
      result.chunk = to.chunk;
      offer(index, step, to, result.offer);
    }
    begin(index, step, kReceive, to);
    add({Act::wait_ready, result.flow, 0, 0});
    add_combine({{result}, {local_target(step, target)}, Tree::chain, false});
    add({Act::release, result.flow, 0, 0});
  }

  void offer(int index, const Step& step, const Place& to, std::uint16_t flow) {
    begin(index, step, kSend, to);
    add({Act::wait_room, flow, 0, 0});
    add({Act::offer, flow, 0, static_cast<std::uint32_t>(program_.offers.size())});
    add({Act::commit, flow, 0, 0});
    program_.offers.push_back(local(to));
  }

  void execute(int index, const Step& step) {
    const auto mine = [this](const Place& place) { return place.rank == program_.rank; };
    const auto own = std::find_if(step.to.begin(), step.to.end(), mine);
    begin(index, step, kExecute, own != step.to.end() ? *own : *std::find_if(step.from.begin(), step.from.end(), mine));

    CombineAction action{{}, {}, step.tree, step.final};
    std::map<std::uint16_t, std::uint16_t> depth;  // messages taken of each in-flow in this step
    const auto take = [&](Rank peer) {
      const std::uint16_t flow = flow_from(peer);
      return std::pair(flow, depth[flow]++);
    };
    for (std::size_t i = 0; i < step.from.size(); ++i) {
      Operand operand = local(step.from[i]);
      if (!mine(step.from[i])) {
        const auto [flow, before] = take(step.from[i].rank);
        operand = message(step.from[i].buffer, flow, before);
      }
      operand.leaf = i < step.leaf.size() && step.leaf[i];
      action.from.push_back(operand);
    }
    std::vector<std::uint16_t> given;
    for (std::size_t i = 0; i < step.to.size(); ++i) {
      const Place& to = step.to[i];
      if (mine(to)) {
        action.to.push_back(local_target(step, i));
        continue;
      }
      Operand target = message(to.buffer, flow_to(to.rank, step.level), 0);
      target.lent = is_lent(step, to);
      if (target.lent) std::tie(target.offer, target.depth) = take(to.rank);
      target.last = target.lent && step.last[i];
      action.to.push_back(target);
      given.push_back(target.flow);
    }
    for (const auto& [flow, messages] : depth) add({Act::wait_ready, flow, last_of(messages), 0});
    for (const std::uint16_t flow : given) add({Act::wait_room, flow, 0, 0});
    add_combine(std::move(action));
    for (const std::uint16_t flow : given) add({Act::commit, flow, 0, 0});
    for (const auto& [flow, messages] : depth) add({Act::release, flow, last_of(messages), 0});
  }

  static std::uint16_t last_of(std::uint16_t messages) { return static_cast<std::uint16_t>(messages - 1); }

  void begin(int index, const Step& step, Phase phase, const Place& extent) {
    program_.steps.push_back(
        {index, step.level, phase, local(extent), static_cast<std::uint32_t>(program_.actions.size()), 0});
  }
  void add(Action action) {
    program_.actions.push_back(action);
    ++program_.steps.back().actions;
  }
  void add_combine(CombineAction action) {
    add({Act::combine, 0, 0, static_cast<std::uint32_t>(program_.combines.size())});
    program_.combines.push_back(std::move(action));
  }

  static Operand local(const Place& place) {
    Operand operand;
    operand.buffer = place.buffer;
    operand.chunk = place.chunk;
    return operand;
  }
  static Operand local_target(const Step& step, std::size_t target) {
    Operand operand = local(step.to[target]);
    operand.last = step.last[target];
    return operand;
  }
  static Operand message(Buffer form_of, std::uint16_t flow, std::uint16_t depth) {
    Operand operand;
    operand.message = true;
    operand.buffer = form_of;
    operand.flow = flow;
    operand.depth = depth;
    return operand;
  }

  static std::uint16_t index_of(std::vector<Rank>& peers, std::map<Rank, std::uint16_t>& indices, Rank peer) {
    const auto [at, added] = indices.try_emplace(peer, static_cast<std::uint16_t>(peers.size()));
    if (added) peers.push_back(peer);
    return at->second;
  }
  // Counts the messages of each flow in a level: all of them may be committed before the first is released.
  std::uint16_t flow_to(Rank peer, int level) {
    credits_ = std::max(credits_, ++messages_[{peer, level}]);
    return index_of(program_.out_peers, out_index_, peer);
  }
  std::uint16_t flow_from(Rank peer) { return index_of(program_.in_peers, in_index_, peer); }

  void sort_steps() {
    std::stable_sort(program_.steps.begin(), program_.steps.end(), [](const ProgramStep& a, const ProgramStep& b) {
      return std::pair(a.level, a.phase) < std::pair(b.level, b.phase);
    });
    program_.level_begin.assign(static_cast<std::size_t>(program_.levels) + 1, 0);
    for (const ProgramStep& step : program_.steps) ++program_.level_begin[static_cast<std::size_t>(step.level) + 1];
    for (std::size_t i = 1; i < program_.level_begin.size(); ++i)
      program_.level_begin[i] += program_.level_begin[i - 1];
  }

  void close_direct_flows() {
    std::sort(described_.begin(), described_.end());
    described_.erase(std::unique(described_.begin(), described_.end()), described_.end());
    for (const std::uint16_t flow : described_) program_.closing.push_back({Act::wait_released, flow, 0, 0});
  }

  const Schedule& schedule_;
  Program program_;
  const LowerOptions& options_;
  std::map<Place, const Step*> last_write_;
  std::map<Rank, std::uint16_t> out_index_;
  std::map<Rank, std::uint16_t> in_index_;
  std::map<std::pair<Rank, int>, int> messages_;
  std::vector<std::uint16_t> described_;
  int credits_ = 1;
};

}  // namespace

Result<Program> lower(const Schedule& schedule, Rank rank, const LowerOptions& options) {
  if (rank < 0 || rank >= schedule.shape.ranks)
    return Error{Code::invalid_argument, "schedule " + schedule.name + " has ranks 0.." +
                                             std::to_string(schedule.shape.ranks - 1) + ", not " +
                                             std::to_string(rank)};
  if (schedule.only && *schedule.only != rank)
    return Error{Code::invalid_argument, "schedule " + schedule.name + " was built for rank " +
                                             std::to_string(*schedule.only) + " only, not for " + std::to_string(rank)};
  if (!options.windows.empty() && options.windows.size() != static_cast<std::size_t>(schedule.shape.ranks))
    return Error{Code::invalid_argument, "schedule " + schedule.name + " has " + std::to_string(schedule.shape.ranks) +
                                             " ranks, windows are told of " + std::to_string(options.windows.size())};
  return Lowering(schedule, rank, options).run();
}

}  // namespace sluice
