#include "comm/executor/program_run.h"

#include <algorithm>

namespace sluice {
namespace {

// A smaller message is copied: waiting for its release would cost more than the copy.
constexpr std::size_t kDescribeBytesMin = 4096;

int slices_in_group(std::size_t slices, std::size_t group, int window) {
  const std::size_t left = slices - group * static_cast<std::size_t>(window);
  return static_cast<int>(std::min(left, static_cast<std::size_t>(window)));
}

}  // namespace

std::size_t scratch_bytes(const RunBinding& b) {
  const std::size_t value = b.wide_scratch ? accumulator_bytes(b.rule.type) : element_bytes(b.rule.type);
  return static_cast<std::size_t>(b.window) * static_cast<std::size_t>(b.program->shape.scratch_chunks) *
         b.slice_elements * value;
}

void ProgramRun::bind(const RunBinding& binding) {
  b_ = binding;
  element_bytes_ = element_bytes(b_.rule.type);
  accumulator_bytes_ = accumulator_bytes(b_.rule.type);
  const std::size_t chunk = b_.layout.chunk_count_max();
  slices_ = chunk <= b_.slice_elements ? (chunk == 0 ? 0 : 1) : (chunk + b_.slice_elements - 1) / b_.slice_elements;
  group_ = 0;
  tick_ = 0;
  slice_ = 0;
  step_ = b_.program->level_begin.empty() ? 0 : b_.program->level_begin[0];
  in_step_ = false;
  closing_ = 0;
  blocked_on_ = nullptr;
  described_until_.assign(b_.program->out_peers.size(), 0);
  headers_.resize(b_.program->out_peers.size());
  waiting_for_ = -1;
  fault_ = {};
  bytes_sent_ = 0;
  progress_ = 0;
}

Advance ProgramRun::advance(int steps) {
  while (true) {
    if (!in_step_ && next_step() == Find::finished) return run_closing();
    const Advance ran = run_actions();
    if (ran != Advance::done) return ran;
    in_step_ = false;
    ++step_;
    if (--steps == 0) return Advance::moved;
  }
}

// Moves the cursor to the next step that has elements, from (group_, tick_, slice_, step_) on.
ProgramRun::Find ProgramRun::next_step() {
  const Program& program = *b_.program;
  for (; group_ * static_cast<std::size_t>(b_.window) < slices_; ++group_, tick_ = 0) {
    const int slices = slices_in_group(slices_, group_, b_.window);
    for (; tick_ < program.levels + slices - 1; ++tick_, slice_ = 0) {
      for (; slice_ < slices; ++slice_) {
        const int level = tick_ - slice_;
        if (level < 0 || level >= program.levels) continue;
        const std::uint32_t end = program.level_begin[static_cast<std::size_t>(level) + 1];
        for (step_ = std::max(step_, program.level_begin[static_cast<std::size_t>(level)]); step_ < end; ++step_)
          if (enter(program.steps[step_])) return Find::found;
        step_ = 0;
      }
    }
    slice_ = 0;
    step_ = 0;
  }
  return Find::finished;
}

bool ProgramRun::enter(const ProgramStep& step) {
  const std::size_t chunk = b_.layout.of(step.extent.buffer, step.extent.chunk).count;
  const std::size_t slice = group_ * static_cast<std::size_t>(b_.window) + static_cast<std::size_t>(slice_);
  begin_ = slice * b_.slice_elements;
  if (begin_ >= chunk) return false;
  count_ = std::min(chunk - begin_, b_.slice_elements);
  action_ = 0;
  in_step_ = true;
  return true;
}

Advance ProgramRun::run_actions() {
  const ProgramStep& step = b_.program->steps[step_];
  for (; action_ < step.actions; ++action_) {
    const Action& action = b_.program->actions[step.first_action + action_];
    switch (action.act) {
      case Act::wait_ready:
      case Act::wait_room:
      case Act::wait_released:
        if (!wait_satisfied(action)) return blocked_on(action);
        break;
      case Act::combine:
        if (!combine_now(b_.program->combines[action.index])) return Advance::failed;
        break;
      case Act::commit:
        bytes_sent_ += headers_[action.flow].bytes;
        b_.out_flows[action.flow]->commit(headers_[action.flow]);
        if (headers_[action.flow].described()) described_until_[action.flow] = b_.out_flows[action.flow]->committed();
        break;
      case Act::release: b_.in_flows[action.flow]->release(); break;
    }
    ++progress_;
  }
  return Advance::done;
}

Advance ProgramRun::run_closing() {
  for (; closing_ < b_.program->closing.size(); ++closing_, ++progress_)
    if (const Action& action = b_.program->closing[closing_]; !wait_satisfied(action)) return blocked_on(action);
  return Advance::done;
}

bool ProgramRun::wait_satisfied(const Action& action) {
  bool satisfied = false;
  if (action.act == Act::wait_ready) {
    satisfied = b_.in_flows[action.flow]->ready(action.depth);
    if (!satisfied) waiting_for_ = b_.program->in_peers[action.flow];
    return satisfied;
  }
  OutFlow& flow = *b_.out_flows[action.flow];
  if (action.act == Act::wait_room)
    satisfied = flow.room() > 0;
  else
    satisfied = described_until_[action.flow] == 0 || flow.released() >= described_until_[action.flow];
  if (!satisfied) waiting_for_ = b_.program->out_peers[action.flow];
  return satisfied;
}

Form ProgramRun::form_of(Buffer buffer) const {
  return buffer == Buffer::scratch && b_.wide_scratch ? Form::accumulator : Form::element;
}

std::size_t ProgramRun::bytes_in(Form form) const {
  return count_ * (form == Form::accumulator ? accumulator_bytes_ : element_bytes_);
}

// Where the slice of a local place lies.
std::byte* ProgramRun::local(const Operand& operand, Form& form) const {
  form = form_of(operand.buffer);
  if (operand.buffer == Buffer::scratch) {
    const auto chunks = static_cast<std::size_t>(b_.program->shape.scratch_chunks);
    const std::size_t value = b_.wide_scratch ? accumulator_bytes_ : element_bytes_;
    const std::size_t at = static_cast<std::size_t>(slice_) * chunks + static_cast<std::size_t>(operand.chunk);
    return b_.scratch + at * b_.slice_elements * value;
  }
  const std::size_t offset = (b_.layout.of(operand.buffer, operand.chunk).offset + begin_) * element_bytes_;
  // The kernel never writes through a source, so the caller's const input stays so.
  return (operand.buffer == Buffer::input ? const_cast<std::byte*>(b_.in) : b_.out) + offset;
}

bool ProgramRun::take_source(const Operand& operand, CombineSource& source) {
  source.leaf = operand.leaf;
  if (!operand.message) {
    source.data = local(operand, source.form);
    return true;
  }
  InFlow& flow = *b_.in_flows[operand.flow];
  const SlotHeader header = flow.header(operand.depth);
  const Rank peer = b_.program->in_peers[operand.flow];
  source.form = form_of(operand.buffer);
  if (header.digest != b_.digest) {
    waiting_for_ = peer;  // for its word on what it posted
    fault_ = {RunFault::Kind::digest, peer, b_.digest, header.digest};
    return false;
  }
  if (header.bytes != bytes_in(source.form)) {
    fault_ = {RunFault::Kind::bytes, peer, bytes_in(source.form), header.bytes};
    return false;
  }
  source.data = flow.payload(header, operand.depth);
  if (source.data == nullptr) fault_ = {RunFault::Kind::window, peer, 0, header.window_offset};
  return source.data != nullptr;
}

CombineTarget ProgramRun::place_target(const Operand& operand) {
  CombineTarget target;
  if (!operand.message) {
    target.data = local(operand, target.form);
    return target;
  }
  target.form = form_of(operand.buffer);
  const std::size_t bytes = bytes_in(target.form);
  target.data = b_.out_flows[operand.flow]->reserve(bytes);
  headers_[operand.flow] = {b_.digest, static_cast<std::uint32_t>(bytes), SlotHeader::kNoWindow};
  return target;
}

// A message whose receiver reads it where it lies, when it lies in a window of ours.
bool ProgramRun::describe(const CombineAction& action) {
  const Operand& to = action.to.front();
  if (!to.direct || bytes_in(form_of(to.buffer)) < kDescribeBytesMin) return false;
  Form form{};
  const std::byte* data = local(action.from.front(), form);
  const std::uint64_t offset = b_.out_flows[to.flow]->window_offset(data, bytes_in(form));
  if (offset == SlotHeader::kNoWindow) return false;
  headers_[to.flow] = {b_.digest, static_cast<std::uint32_t>(bytes_in(form)), offset};
  return true;
}

bool ProgramRun::combine_now(const CombineAction& action) {
  if (describe(action)) return true;
  sources_.resize(action.from.size());
  targets_.clear();
  for (std::size_t i = 0; i < action.from.size(); ++i)
    if (!take_source(action.from[i], sources_[i])) return false;
  for (const Operand& to : action.to) targets_.push_back(place_target(to));
  CombineRule rule = b_.rule;
  rule.tree = action.tree;
  rule.final = action.final;
  combine(rule, sources_, targets_, count_);
  return true;
}

}  // namespace sluice
