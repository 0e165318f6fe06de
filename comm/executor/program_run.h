// One operation's run of a lowered program at one rank: a small state machine that never blocks, allocates only when bound, and
// touches nothing but the caller's buffers and the rings of its flows.
//
//   Slices   `slice_elements` values of every chunk at a time, in groups of `window`, in the order that comm/lower/program.h states.
//   Cost     per message: one look at a ring's counter, one pass of the combine kernel, one store to a counter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/executor/code.h"
#include "comm/trace/wait_reason.h"
#include "transport/slot_ring.h"

namespace sluice {

struct RunBinding {
  const BoundCode* code = nullptr;  // it and its program outlive the run
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::byte* scratch = nullptr;  // BoundCode::scratch_bytes()
  bool stream = false;           // what is written last is stored past the caches
  std::uint32_t digest = 0;
  std::size_t describe_from = 0;        // bytes: a smaller message is copied, and a smaller place not lent
  std::span<OutFlow* const> out_flows;  // as Program::out_peers
  std::span<InFlow* const> in_flows;    // as Program::in_peers
};

enum class Advance : std::uint8_t { moved, blocked, done, failed };

// Why a run failed: what a message said, and what was expected.
struct RunFault {
  enum class Kind : std::uint8_t { none, digest, bytes, window } kind = Kind::none;
  Rank peer = -1;
  std::uint64_t expected = 0;
  std::uint64_t got = 0;
};

class ProgramRun {
 public:
  void bind(const RunBinding& binding);

  // Runs until it would wait, or `steps` steps ran, or kTurnBytes were moved. `moved` says that it can go on.
  Advance advance(int steps);
  // After `blocked`: has that come which it waits for?
  bool ripe() { return blocked_on_ == nullptr || wait_satisfied(*blocked_on_); }

  Rank waiting_for() const { return waiting_for_; }  // the peer, while blocked
  const RunFault& fault() const { return fault_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_moved() const { return values_moved_ * b_.code->value_bytes(Form::element); }
  // Of the whole run, the slice that it is at.
  std::size_t slice() const {
    return group_ * static_cast<std::size_t>(b_.code->settings().window) + static_cast<std::size_t>(slice_);
  }
  WaitReason waits_on() const;
  std::uint64_t progress_mark() const { return progress_; }  // grows with everything that moves

 private:
  enum class Find : std::uint8_t { found, finished };
  Find next_step();
  bool enter(const CodeStep& step);
  Advance run_actions();
  Advance run_closing();
  bool wait_satisfied(const Action& action);
  Advance blocked_on(const Action& action) {
    blocked_on_ = &action;
    return Advance::blocked;
  }
  bool combine_now(const CodeCombine& combine);
  bool take_source(const CodeOperand& operand, CombineSource& source);
  bool check_header(const SlotHeader& header, std::size_t bytes, Rank peer);
  bool place_target(const CodeOperand& operand, CombineTarget& target);
  bool place_message(const CodeOperand& operand, CombineTarget& target);
  bool describe(const CodeOperand& from, const CodeOperand& to);
  void offer(const Action& action);
  std::uint64_t window_offset(const CodeOperand& place, std::uint16_t out_flow) const;
  std::byte* local(const CodeOperand& operand) const;
  std::size_t bytes_in(Form form) const { return count_ * b_.code->value_bytes(form); }

  RunBinding b_;
  // The cursor: group of slices, tick, slice in the group, step, action; `count_` values of the slice from `begin_`.
  std::size_t group_ = 0;
  int tick_ = 0;
  int slice_ = 0;
  std::uint32_t step_ = 0;
  std::uint32_t action_ = 0;
  bool in_step_ = false;
  std::size_t begin_ = 0;
  std::size_t count_ = 0;
  std::size_t closing_ = 0;
  const Action* blocked_on_ = nullptr;

  std::vector<SlotHeader> headers_;  // per out-flow: of the message that is being made
  std::vector<CombineSource> sources_;
  std::vector<CombineTarget> targets_;
  std::vector<std::uint64_t> described_until_;  // per out-flow: messages that must be released at the end
  Rank waiting_for_ = -1;
  RunFault fault_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t values_moved_ = 0;
  std::uint64_t progress_ = 0;
};

}  // namespace sluice
