#include "comm/verify/composition.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "comm/verify/program_machine.h"

namespace sluice {
namespace {

Error invalid(std::string text) { return {Code::invalid_argument, std::move(text)}; }

// What the flows of all operations share.
class Links {
 public:
  Links(std::span<const ComposedOperation> operations, const ComposedLimits& limits)
      : operations_(operations), limits_(limits) {}

  struct Key {  // of a flow, in world ranks
    std::size_t operation = 0;
    Rank from = 0;
    Rank to = 0;
    auto operator<=>(const Key&) const = default;
  };

  bool has_room(const Key& key) const {
    const std::uint64_t mine = count(in_use_, key);
    if (mine < static_cast<std::uint64_t>(limits_.reserved)) return true;
    std::uint64_t shared = 0;
    for (const auto& [other, used] : in_use_)
      if (other.from == key.from && other.to == key.to)
        shared += used - std::min<std::uint64_t>(used, static_cast<std::uint64_t>(limits_.reserved));
    return shared < static_cast<std::uint64_t>(limits_.surplus);
  }
  void commit(const Key& key) {
    ++in_use_[key];
    if (!limits_.one_connection) return void(++arrived_[key]);
    connections_[{key.from, key.to, operations_[key.operation].priority}].push_back(key);
  }
  void release(const Key& key) { --in_use_[key]; }
  std::uint64_t arrived(const Key& key) const { return count(arrived_, key); }

  // Takes off the connections what has come. Every message has a slot that was kept for it, so none stays in the way. False: nothing moved.
  bool deliver() {
    bool moved = false;
    for (auto& [where, queue] : connections_)
      for (; !queue.empty(); queue.pop_front(), moved = true) ++arrived_[queue.front()];
    return moved;
  }

 private:
  static std::uint64_t count(const std::map<Key, std::uint64_t>& counts, const Key& key) {
    const auto at = counts.find(key);
    return at == counts.end() ? 0 : at->second;
  }
  std::span<const ComposedOperation> operations_;
  const ComposedLimits& limits_;
  std::map<Key, std::uint64_t> in_use_;   // messages that were committed and not released
  std::map<Key, std::uint64_t> arrived_;  // in all
  std::map<std::tuple<Rank, Rank, std::uint8_t>, std::deque<Key>> connections_;
};

// The flows of one operation, as its machine sees them.
class OperationLinks final : public MachineLinks {
 public:
  OperationLinks(Links& links, const ComposedOperation& operation, std::size_t number)
      : links_(links), operation_(operation), number_(number) {}
  bool has_room(Rank from, Rank to) const override { return links_.has_room(key(from, to)); }
  std::uint64_t arrived(Rank from, Rank to) const override { return links_.arrived(key(from, to)); }
  void commit(Rank from, Rank to) override { links_.commit(key(from, to)); }
  void release(Rank from, Rank to) override { links_.release(key(from, to)); }

 private:
  Links::Key key(Rank from, Rank to) const {
    return {number_, operation_.members[static_cast<std::size_t>(from)],
            operation_.members[static_cast<std::size_t>(to)]};
  }
  Links& links_;
  const ComposedOperation& operation_;
  std::size_t number_;
};

class Composition {
 public:
  Composition(std::span<const ComposedOperation> operations, std::span<const ComposedThread> threads,
              const ComposedLimits& limits, std::size_t greedy)
      : operations_(operations), threads_(threads), limits_(limits), links_(operations, limits), greedy_(greedy) {}

  Status run();

 private:
  struct Operation {
    std::unique_ptr<OperationLinks> links;
    std::unique_ptr<ProgramMachine> machine;
    std::vector<bool> posted;  // by member
  };
  Status begin();
  std::optional<std::size_t> member(std::size_t operation, Rank world_rank) const;
  bool ended(std::size_t operation, Rank world_rank) const;
  bool post();
  Result<bool> turn(Rank world_rank, std::size_t operation);
  Result<bool> turns();
  Status circle() const;

  std::span<const ComposedOperation> operations_;
  std::span<const ComposedThread> threads_;
  const ComposedLimits& limits_;
  Links links_;
  std::size_t greedy_;  // operation that goes first, as far as it can
  ProgramCheck check_;
  std::vector<Operation> running_;
  std::vector<std::size_t> next_;  // call of each thread
  std::set<Rank> ranks_;
  std::map<Rank, std::size_t> stuck_with_;  // engine_sticks: whom it serves
  int round_ = 0;
};

Status Composition::begin() {
  check_ = {.slots = std::max(1, limits_.reserved + limits_.surplus),
            .slices = limits_.slices,
            .window = limits_.window,
            .direct = false};
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    const ComposedOperation& one = operations_[i];
    if (one.programs.empty() || one.members.size() != one.programs.size())
      return invalid("'" + one.name + "' needs a program for each of its " + std::to_string(one.members.size()) +
                     " members");
    Operation made{.links = std::make_unique<OperationLinks>(links_, one, i),
                   .machine = nullptr,
                   .posted = std::vector<bool>(one.members.size())};
    made.machine = std::make_unique<ProgramMachine>(one.programs, check_, made.links.get());
    if (const Status begun = made.machine->begin_all(); !begun.ok())
      return invalid("'" + one.name + "': " + begun.text());
    running_.push_back(std::move(made));
    ranks_.insert(one.members.begin(), one.members.end());
  }
  next_.resize(threads_.size());
  return {};
}

std::optional<std::size_t> Composition::member(std::size_t operation, Rank world_rank) const {
  const std::vector<Rank>& members = operations_[operation].members;
  const auto at = std::find(members.begin(), members.end(), world_rank);
  if (at == members.end()) return std::nullopt;
  return static_cast<std::size_t>(at - members.begin());
}

bool Composition::ended(std::size_t operation, Rank world_rank) const {
  return running_[operation].machine->done(static_cast<Rank>(*member(operation, world_rank)));
}

// Threads make their calls until one blocks.
bool Composition::post() {
  bool moved = false;
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const ComposedThread& thread = threads_[i];
    for (; next_[i] < thread.calls.size(); ++next_[i], moved = true) {
      const ComposedCall& call = thread.calls[next_[i]];
      running_[call.operation].posted[*member(call.operation, thread.rank)] = true;
      if (call.blocks && !ended(call.operation, thread.rank)) break;
    }
  }
  return moved;
}

Result<bool> Composition::turn(Rank world_rank, std::size_t operation) {
  const auto who = member(operation, world_rank);
  Operation& running = running_[operation];
  if (!who || !running.posted[*who] || running.machine->done(static_cast<Rank>(*who))) return false;
  if (round_ % 4 < operations_[operation].pauses) return true;  // it may go on later: time is all it waits for
  if (limits_.engine_sticks && stuck_with_.try_emplace(world_rank, operation).first->second != operation) return false;
  auto moved = running.machine->step(static_cast<Rank>(*who));
  if (!moved.ok()) return Error{moved.error().code, "'" + operations_[operation].name + "': " + moved.error().text};
  if (running.machine->done(static_cast<Rank>(*who))) stuck_with_.erase(world_rank);
  return moved;
}

// Every engine gives every operation a turn, the greedy one first and until it can't go on.
Result<bool> Composition::turns() {
  bool moved = false;
  for (bool more = greedy_ < operations_.size(); more;) {
    more = false;
    for (const Rank rank : ranks_) {
      SLUICE_TRY_ASSIGN(const bool went, turn(rank, greedy_));
      more = more || (went && operations_[greedy_].pauses == 0);
    }
    more = links_.deliver() || more;
    moved = moved || more;
  }
  for (const Rank rank : ranks_)
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      SLUICE_TRY_ASSIGN(const bool went, turn(rank, i));
      moved = moved || went;
    }
  return links_.deliver() || moved;
}

Status Composition::run() {
  SLUICE_TRY(begin());
  while (true) {
    const bool posted = post();
    SLUICE_TRY_ASSIGN(const bool moved, turns());
    ++round_;
    if (posted || moved) continue;
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (next_[i] < threads_[i].calls.size()) return circle();
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      for (const Rank rank : operations_[i].members)
        if (!ended(i, rank)) return circle();
      if (const Status right = running_[i].machine->check_end(); !right.ok())
        return invalid("'" + operations_[i].name + "': " + right.text());
    }
    return {};
  }
}

// Nothing moves: from a rank that is in a call to the one that it waits for, and on from there.
Status Composition::circle() const {
  std::string text = "calls that never end: ";
  std::set<Rank> seen;
  for (std::size_t i = 0; i < operations_.size() && seen.empty(); ++i)
    for (const Rank first : operations_[i].members) {
      if (ended(i, first) || !running_[i].posted[*member(i, first)]) continue;
      Rank rank = first;
      std::size_t operation = i;
      while (seen.insert(rank).second) {
        const auto who = static_cast<Rank>(*member(operation, rank));
        const Rank waits_for = running_[operation].machine->waits_for(who);
        if (waits_for < 0)
          return invalid(text + "rank " + std::to_string(rank) + " is in '" + operations_[operation].name +
                         "', which its engine does not serve");
        const Rank peer = operations_[operation].members[static_cast<std::size_t>(waits_for)];
        text += "rank " + std::to_string(rank) + " is in '" + operations_[operation].name + "' and waits for rank " +
                std::to_string(peer) + "; ";
        rank = peer;
        const bool is_in = running_[operation].posted[*member(operation, peer)] && !ended(operation, peer);
        if (is_in) continue;
        // The peer is in other calls, one of which holds it up.
        std::optional<std::size_t> other;
        for (std::size_t j = 0; j < operations_.size() && !other; ++j)
          if (const auto there = member(j, peer); there && running_[j].posted[*there] && !ended(j, peer)) other = j;
        if (!other) return invalid(text + "rank " + std::to_string(peer) + " never comes to it");
        operation = *other;
      }
      return invalid(text + "a circle: make such calls in one order everywhere, or post them before waiting");
    }
  return invalid(text + "nobody is in any");
}

// Every call is one of a member, and each member makes each call once.
Status check_calls(std::span<const ComposedOperation> operations, std::span<const ComposedThread> threads) {
  std::set<std::pair<std::size_t, Rank>> made;
  for (const ComposedThread& thread : threads)
    for (const ComposedCall& call : thread.calls) {
      const std::string who = "rank " + std::to_string(thread.rank);
      if (call.operation >= operations.size())
        return invalid(who + " calls operation " + std::to_string(call.operation) + ", which is none");
      const ComposedOperation& one = operations[call.operation];
      if (std::find(one.members.begin(), one.members.end(), thread.rank) == one.members.end())
        return invalid(who + " calls '" + one.name + "', of which it is no member");
      if (!made.insert({call.operation, thread.rank}).second) return invalid(who + " calls '" + one.name + "' twice");
    }
  for (const ComposedOperation& one : operations) {
    if (one.pauses < 0 || one.pauses > 3)
      return invalid("'" + one.name + "': pauses is " + std::to_string(one.pauses) + ", but must be 0..3");
    if (std::set<Rank>(one.members.begin(), one.members.end()).size() != one.members.size())
      return invalid("'" + one.name + "' has a member twice");
  }
  return {};
}

}  // namespace

Status verify_composition(std::span<const ComposedOperation> operations, std::span<const ComposedThread> threads,
                          const ComposedLimits& limits) {
  SLUICE_TRY(check_calls(operations, threads));
  // Slots of its own make a flow independent of all others: then one run is as good as all.
  const bool independent = std::all_of(operations.begin(), operations.end(), [&](const ComposedOperation& one) {
    return std::all_of(one.programs.begin(), one.programs.end(),
                       [&](const Program& program) { return limits.reserved >= program.credits; });
  });
  const std::size_t runs = independent && !limits.engine_sticks ? 1 : operations.size() + 1;
  for (std::size_t greedy = 0; greedy < runs; ++greedy)
    SLUICE_TRY(Composition(operations, threads, limits, runs == 1 ? operations.size() : greedy).run());
  return {};
}

}  // namespace sluice
