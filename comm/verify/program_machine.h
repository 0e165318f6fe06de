// Runs the lowered programs of all ranks on symbols, each until it has to wait, in turn; see verify_program.h for what that proves.
//
//   Knowledge  a rank may rely only on what its own waits told it: messages that are ready, room in a flow, described messages that
//              were released. That another rank happens to be ahead in this run counts for nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/lower/program.h"
#include "comm/verify/symbols.h"
#include "comm/verify/verify_program.h"

namespace sluice {

// What the flows of a machine share with those of others. Without one each has ProgramCheck::slots, and a message is there at once.
class MachineLinks {
 public:
  virtual ~MachineLinks() = default;
  virtual bool has_room(Rank from, Rank to) const = 0;
  virtual std::uint64_t arrived(Rank from, Rank to) const = 0;  // messages, in all
  virtual void commit(Rank from, Rank to) = 0;
  virtual void release(Rank from, Rank to) = 0;
};

class ProgramMachine {
 public:
  // All borrowed.
  ProgramMachine(std::span<const Program> programs, const ProgramCheck& check, MachineLinks* links = nullptr)
      : programs_(programs), check_(check), links_(links), shape_(programs[0].shape), symbols_(shape_) {}

  // Errors of all: invalid_argument, naming rank, step, action and fault.
  Status run();
  // The same by hand: begin_all, then step any rank in any order until all are done, then check_end.
  Status begin_all();
  Result<bool> step(Rank rank);  // as far as it can go; false: it could not go on
  bool done(Rank rank) const { return states_[static_cast<std::size_t>(rank)].done; }
  Rank waits_for(Rank rank) const;  // of a rank that can't go on: whom for; -1: it never ran
  Status check_end();

 private:
  struct Value {
    Symbol symbol = kNoValue;
    int slice = -1;  // whose elements these are
  };

  struct Message {
    Value value;
    Buffer form = Buffer::input;
    int part = 0;            // of the sender's extent
    bool described = false;  // the receiver finds the value at `place` of the sender
    bool offered = false;    // the receiver may write its result to `place` of the sender
    bool delivered = false;  // the receiver has the value at `place`, which it had offered
    Place place;
    int slice = 0;
    bool read = false;
    std::uint64_t read_before = 0;  // messages the other way that its sender had read for good when it committed
  };

  // The messages of an ordered pair of ranks, and what each end knows of them from its own waits: nothing else may be relied on.
  struct Flow {
    Rank from = 0;
    Rank to = 0;
    std::deque<Message> unreleased;
    std::uint64_t committed = 0;
    std::uint64_t released = 0;
    std::uint64_t room_known = 0;      // sender: so many may be committed in all
    std::uint64_t released_known = 0;  // sender: so many were released, or read for good
    std::uint64_t told = 0;            // receiver: so many it told that it has read
    std::uint64_t ready_known = 0;     // receiver: so many were committed
    std::uint64_t described_until = 0;
    Message reserved;
    bool written = false;  // the reserved slot
  };

  // What a described message still names, or to which flow a place is lent.
  struct Named {
    std::size_t flow = 0;
    std::uint64_t message = 0;
  };

  struct RankState {
    std::vector<std::size_t> out_flows;  // indices of flows_, as Program::out_peers
    std::vector<std::size_t> in_flows;
    std::vector<Value> elements;                                // per slice: inputs, outputs
    std::vector<Value> scratch;                                 // per slice in the window
    std::map<std::pair<int, Place>, std::vector<Named>> named;  // by slice and place
    std::map<std::pair<int, Place>, Named> lent;
    // The cursor.
    int group = 0;
    int tick = 0;
    int slice = 0;  // in the group
    std::uint32_t step = 0;
    std::uint32_t action = 0;
    bool in_step = false;
    std::size_t closing = 0;
    bool done = false;
  };

  enum class Ran : std::uint8_t { moved, blocked, done };

  const Program& program() const { return programs_[static_cast<std::size_t>(rank_)]; }
  RankState& state() { return states_[static_cast<std::size_t>(rank_)]; }
  int slice_now() { return state().group * check_.window + state().slice; }

  void begin(Rank rank);
  std::size_t flow_between(Rank from, Rank to);

  Result<Ran> run_rank();
  bool next_step();
  bool is_empty(const ProgramStep& step, int slice) const;
  int parts_in(int slice) const;
  Result<Ran> run_action(const Action& action);
  Status combine(const CombineAction& action);
  Result<Value> take(const Operand& source);
  Result<Message*> message_of(std::uint16_t in_flow, std::uint16_t depth, Buffer form);
  Status put(const Operand& target, const CombineAction& action, Value value);
  Status put_message(const Operand& target, const CombineAction& action, Value value);
  Status put_lent(const Operand& target, Flow& out);
  Status describe(const CombineAction& action, std::size_t flow);
  Status offer(const Action& action);
  Status reserve(Flow& flow, Buffer form, Value value);
  Status take_home(const Message& result, const CombineAction& action);
  Status check_not_lent(const Place& place);
  Status check_unnamed(const Place& place, std::optional<std::size_t> but_of_flow);
  Status check_marks(const CombineAction& action) const;
  void learn(const Flow& flow, std::size_t depth);
  Status commit(Flow& flow);
  Status release(Flow& flow);
  Status finish();

  Place place_of(Rank rank, const Operand& operand) const;
  std::pair<int, Place> key_of(const Place& place, int slice) const;  // of RankState::named and lent
  Value& value_at(Rank rank, Place place, int slice);
  Status fault(const std::string& what);
  Status deadlock();
  Status check_flows() const;
  Status check_results();

  bool is_there(const Flow& flow, std::size_t depth) const;
  bool has_room(const Flow& flow) const;

  std::span<const Program> programs_;
  const ProgramCheck& check_;
  MachineLinks* links_;
  ScheduleShape shape_;
  Symbols symbols_;
  std::vector<RankState> states_;
  std::vector<Flow> flows_;
  std::map<std::pair<Rank, Rank>, std::size_t> flow_index_;
  Rank rank_ = 0;                // that runs
  std::vector<Symbol> sources_;  // of the combine that runs
};

}  // namespace sluice
