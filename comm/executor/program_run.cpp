#include "comm/executor/program_run.h"

#include <algorithm>

namespace sluice {
namespace {

int slices_in_group(std::size_t slices, std::size_t group, int window) {
  const std::size_t left = slices - group * static_cast<std::size_t>(window);
  return static_cast<int>(std::min(left, static_cast<std::size_t>(window)));
}

}  // namespace

void ProgramRun::bind(const RunBinding& binding) {
  b_ = binding;
  const Program& program = b_.code->program();
  group_ = 0;
  tick_ = 0;
  slice_ = 0;
  step_ = program.level_begin.empty() ? 0 : program.level_begin[0];
  in_step_ = false;
  closing_ = 0;
  blocked_on_ = nullptr;
  described_until_.assign(program.out_peers.size(), 0);
  headers_.resize(program.out_peers.size());
  waiting_for_ = -1;
  fault_ = {};
  bytes_sent_ = 0;
  values_moved_ = 0;
  progress_ = 0;
}

Advance ProgramRun::advance(int steps) {
  const std::uint64_t enough = values_moved_ + b_.code->values_in_turn();
  while (true) {
    if (!in_step_ && next_step() == Find::finished) return run_closing();
    const Advance ran = run_actions();
    if (ran != Advance::done) return ran;
    in_step_ = false;
    ++step_;
    if (--steps == 0 || values_moved_ >= enough) return Advance::moved;
  }
}

// Moves the cursor to the next step that has elements, from (group_, tick_, slice_, step_) on.
ProgramRun::Find ProgramRun::next_step() {
  const Program& program = b_.code->program();
  const std::span<const CodeStep> steps = b_.code->steps();
  const int window = b_.code->settings().window;
  for (; group_ * static_cast<std::size_t>(window) < b_.code->slices(); ++group_, tick_ = 0) {
    const int slices = slices_in_group(b_.code->slices(), group_, window);
    for (; tick_ < program.levels + slices - 1; ++tick_, slice_ = 0) {
      for (; slice_ < slices; ++slice_) {
        const int level = tick_ - slice_;
        if (level < 0 || level >= program.levels) continue;
        const std::uint32_t end = program.level_begin[static_cast<std::size_t>(level) + 1];
        for (step_ = std::max(step_, program.level_begin[static_cast<std::size_t>(level)]); step_ < end; ++step_)
          if (enter(steps[step_])) return Find::found;
        step_ = 0;
      }
    }
    slice_ = 0;
    step_ = 0;
  }
  return Find::finished;
}

bool ProgramRun::enter(const CodeStep& step) {
  const CodeSettings& settings = b_.code->settings();
  const std::size_t slice = group_ * static_cast<std::size_t>(settings.window) + static_cast<std::size_t>(slice_);
  begin_ = slice * settings.slice_elements;
  if (begin_ >= step.count) return false;
  count_ = std::min(step.count - begin_, settings.slice_elements);
  action_ = 0;
  in_step_ = true;
  return true;
}

Advance ProgramRun::run_actions() {
  const CodeStep& step = b_.code->steps()[step_];
  for (; action_ < step.actions; ++action_) {
    const Action& action = b_.code->program().actions[step.first_action + action_];
    switch (action.act) {
      case Act::wait_ready:
      case Act::wait_room:
      case Act::wait_released:
        if (!wait_satisfied(action)) return blocked_on(action);
        break;
      case Act::combine:
        if (!combine_now(b_.code->combine(action.index))) return Advance::failed;
        break;
      case Act::commit:
        b_.out_flows[action.flow]->commit(headers_[action.flow]);
        if (headers_[action.flow].names_memory())
          described_until_[action.flow] = b_.out_flows[action.flow]->committed();
        break;
      case Act::release: b_.in_flows[action.flow]->release(std::uint64_t{1} + action.depth); break;
      case Act::offer: offer(action); break;
    }
    ++progress_;
  }
  return Advance::done;
}

Advance ProgramRun::run_closing() {
  for (; closing_ < b_.code->program().closing.size(); ++closing_, ++progress_)
    if (const Action& action = b_.code->program().closing[closing_]; !wait_satisfied(action)) return blocked_on(action);
  return Advance::done;
}

bool ProgramRun::wait_satisfied(const Action& action) {
  bool satisfied = false;
  if (action.act == Act::wait_ready) {
    satisfied = b_.in_flows[action.flow]->ready(action.depth);
    if (!satisfied) waiting_for_ = b_.code->program().in_peers[action.flow];
    return satisfied;
  }
  OutFlow& flow = *b_.out_flows[action.flow];
  if (action.act == Act::wait_room)
    satisfied = flow.room() > 0;
  else
    satisfied = described_until_[action.flow] == 0 || flow.released() >= described_until_[action.flow];
  if (!satisfied) waiting_for_ = b_.code->program().out_peers[action.flow];
  return satisfied;
}

WaitReason ProgramRun::waits_on() const {
  if (blocked_on_ == nullptr) return WaitReason::nothing;
  return blocked_on_->act == Act::wait_ready  ? WaitReason::message
         : blocked_on_->act == Act::wait_room ? WaitReason::room
                                              : WaitReason::reading;
}

// Where the slice of a local place lies. The kernel never writes through a source, so the caller's const input stays so.
std::byte* ProgramRun::local(const CodeOperand& operand) const {
  if (operand.buffer == Buffer::scratch)
    return b_.scratch + static_cast<std::size_t>(slice_) * b_.code->scratch_slice_bytes() + operand.offset;
  std::byte* const base = operand.buffer == Buffer::input ? const_cast<std::byte*>(b_.in) : b_.out;
  return base + operand.offset + begin_ * b_.code->value_bytes(Form::element);
}

bool ProgramRun::check_header(const SlotHeader& header, std::size_t bytes, Rank peer) {
  if (header.digest == b_.digest && header.bytes == bytes) return true;
  if (header.digest == b_.digest) {
    fault_ = {RunFault::Kind::bytes, peer, bytes, header.bytes};
  } else {
    waiting_for_ = peer;  // for its word on what it posted
    fault_ = {RunFault::Kind::digest, peer, b_.digest, header.digest};
  }
  return false;
}

bool ProgramRun::take_source(const CodeOperand& operand, CombineSource& source) {
  source.leaf = operand.leaf;
  source.form = operand.form;
  if (!operand.message) {
    source.data = local(operand);
    return true;
  }
  const InFlow& flow = *b_.in_flows[operand.flow];
  const SlotHeader header = flow.header(operand.depth);
  const Rank peer = b_.code->program().in_peers[operand.flow];
  if (!check_header(header, bytes_in(operand.form), peer)) return false;
  const bool lies_there = operand.lent && header.window_offset == SlotHeader::kNoPayload &&
                          window_offset(operand, operand.offer) < SlotHeader::kNoPayload;
  source.data = lies_there ? local(operand) : flow.payload(header, operand.depth);
  if (source.data == nullptr) fault_ = {RunFault::Kind::window, peer, 0, header.window_offset};
  return source.data != nullptr;
}

bool ProgramRun::place_target(const CodeOperand& operand, CombineTarget& target) {
  target.form = operand.form;
  target.stream = b_.stream && operand.last;
  if (operand.message) return place_message(operand, target);
  target.data = local(operand);
  return true;
}

// In the receiver's memory if it lent some, else in a slot.
bool ProgramRun::place_message(const CodeOperand& operand, CombineTarget& target) {
  const std::size_t bytes = bytes_in(operand.form);
  SlotHeader& header = headers_[operand.flow];
  header = {b_.digest, static_cast<std::uint32_t>(bytes), SlotHeader::kNoPayload};
  bytes_sent_ += bytes;
  if (operand.lent) {
    const InFlow& flow = *b_.in_flows[operand.offer];
    const SlotHeader offer = flow.header(operand.depth);
    const Rank peer = b_.code->program().in_peers[operand.offer];
    if (!check_header(offer, bytes, peer)) return false;
    if (offer.window_offset != SlotHeader::kNoPayload) {
      target.data = flow.window(offer);
      if (target.data == nullptr) fault_ = {RunFault::Kind::window, peer, 0, offer.window_offset};
      return target.data != nullptr;
    }
  }
  header.window_offset = SlotHeader::kNoWindow;
  target.stream = false;
  target.data = b_.out_flows[operand.flow]->reserve(bytes);
  return true;
}

// Where the slice of a local place lies in our arena, for the receiver of a flow; kNoPayload: it does not, or a copy is cheaper.
std::uint64_t ProgramRun::window_offset(const CodeOperand& place, std::uint16_t out_flow) const {
  const std::size_t bytes = bytes_in(place.form);
  if (bytes < b_.describe_from) return SlotHeader::kNoPayload;
  return std::min(b_.out_flows[out_flow]->window_offset(local(place), bytes), SlotHeader::kNoPayload);
}

// A message whose receiver reads it where it lies, when it lies in a window of ours.
bool ProgramRun::describe(const CodeOperand& from, const CodeOperand& to) {
  const std::uint64_t offset = window_offset(from, to.flow);
  if (offset == SlotHeader::kNoPayload) return false;
  headers_[to.flow] = {b_.digest, static_cast<std::uint32_t>(bytes_in(to.form)), offset};
  bytes_sent_ += bytes_in(to.form);
  return true;
}

// Says where the executor of a step may write our result.
void ProgramRun::offer(const Action& action) {
  const CodeOperand& place = b_.code->offer(action.index);
  headers_[action.flow] = {b_.digest, static_cast<std::uint32_t>(bytes_in(place.form)),
                           window_offset(place, action.flow)};
}

bool ProgramRun::combine_now(const CodeCombine& combine) {
  const CodeOperand* const from = &b_.code->operand(combine.first);
  const CodeOperand* const to = from + combine.sources;
  if (to->direct && describe(*from, *to)) return true;
  sources_.resize(combine.sources);
  targets_.resize(combine.targets);
  for (std::size_t i = 0; i < combine.sources; ++i)
    if (!take_source(from[i], sources_[i])) return false;
  for (std::size_t i = 0; i < combine.targets; ++i)
    if (!place_target(to[i], targets_[i])) return false;
  sluice::combine(combine.way, combine.rule, sources_, targets_, count_);
  values_moved_ += count_;
  return true;
}

}  // namespace sluice
