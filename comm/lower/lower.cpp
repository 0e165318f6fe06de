#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "comm/lower/program.h"
#include "comm/schedule/places.h"

namespace sluice {
namespace {

// In a slice's level: what a rank sends for others to execute, what it executes, and what an executor sent it.
enum Phase : std::uint8_t { kSend = 0, kExecute = 1, kReceive = 2 };

class Lowering {
 public:
  Lowering(const Schedule& schedule, Rank rank, bool in_place) : schedule_(schedule) {
    program_.shape = schedule.shape;
    program_.rank = rank;
    program_.in_place = in_place;
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
          if (to.rank == program_.rank) last_write_[place_name(to)] = std::max(last_write_[place_name(to)], step.level);
  }

  // May the receiver read `place`, sent at `level`, where it lies? Scratch is used again by the next group of slices.
  bool may_describe(const Place& place, int level) const {
    if (place.buffer == Buffer::scratch) return false;
    const auto written = last_write_.find(place_name(place));
    return written == last_write_.end() || written->second < level;
  }

  void lower_step(int index, const Step& step) {
    if (is_nothing(step)) return;
    if (step.executor == program_.rank) return execute(index, step);
    for (const Place& from : step.from)
      if (from.rank == program_.rank) send(index, step, from);
    for (const Place& to : step.to)
      if (to.rank == program_.rank) receive(index, step, to);
  }

  void send(int index, const Step& step, const Place& from) {
    begin(index, step, kSend, from);
    const std::uint16_t flow = flow_to(step.executor, step.level);
    add({Act::wait_room, flow, 0, 0});
    Operand target = message(from.buffer, flow, 0);
    target.direct = may_describe(from, step.level);
    if (target.direct) described_.push_back(flow);
    add_combine({{local(from)}, {target}, Tree::chain, false});
    add({Act::commit, flow, 0, 0});
  }

  void receive(int index, const Step& step, const Place& to) {
    begin(index, step, kReceive, to);
    const std::uint16_t flow = flow_from(step.executor);
    add({Act::wait_ready, flow, 0, 0});
    add_combine({{message(to.buffer, flow, 0)}, {local(to)}, Tree::chain, false});
    add({Act::release, flow, 0, 0});
  }

  void execute(int index, const Step& step) {
    const auto mine = [this](const Place& place) { return place.rank == program_.rank; };
    const auto own = std::find_if(step.to.begin(), step.to.end(), mine);
    begin(index, step, kExecute, own != step.to.end() ? *own : *std::find_if(step.from.begin(), step.from.end(), mine));

    CombineAction action{{}, {}, step.tree, step.final};
    std::map<std::uint16_t, std::uint16_t> depth;  // messages taken of each in-flow in this step
    std::vector<std::uint16_t> taken;
    for (std::size_t i = 0; i < step.from.size(); ++i) {
      Operand operand = local(step.from[i]);
      if (!mine(step.from[i])) {
        const std::uint16_t flow = flow_from(step.from[i].rank);
        operand = message(step.from[i].buffer, flow, depth[flow]++);
        add({Act::wait_ready, flow, operand.depth, 0});
        taken.push_back(flow);
      }
      operand.leaf = i < step.leaf.size() && step.leaf[i];
      action.from.push_back(operand);
    }
    std::vector<std::uint16_t> given;
    for (const Place& to : step.to) {
      if (mine(to)) {
        action.to.push_back(local(to));
        continue;
      }
      const std::uint16_t flow = flow_to(to.rank, step.level);
      add({Act::wait_room, flow, 0, 0});
      action.to.push_back(message(to.buffer, flow, 0));
      given.push_back(flow);
    }
    add_combine(std::move(action));
    for (const std::uint16_t flow : given) add({Act::commit, flow, 0, 0});
    for (const std::uint16_t flow : taken) add({Act::release, flow, 0, 0});
  }

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
  std::map<Place, int> last_write_;
  std::map<Rank, std::uint16_t> out_index_;
  std::map<Rank, std::uint16_t> in_index_;
  std::map<std::pair<Rank, int>, int> messages_;
  std::vector<std::uint16_t> described_;
  int credits_ = 1;
};

}  // namespace

Result<Program> lower(const Schedule& schedule, Rank rank, bool in_place) {
  if (rank < 0 || rank >= schedule.shape.ranks)
    return Error{Code::invalid_argument, "schedule " + schedule.name + " has ranks 0.." +
                                             std::to_string(schedule.shape.ranks - 1) + ", not " +
                                             std::to_string(rank)};
  if (schedule.only && *schedule.only != rank)
    return Error{Code::invalid_argument, "schedule " + schedule.name + " was built for rank " +
                                             std::to_string(*schedule.only) + " only, not for " + std::to_string(rank)};
  return Lowering(schedule, rank, in_place).run();
}

}  // namespace sluice
