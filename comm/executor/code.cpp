#include "comm/executor/code.h"

#include <bit>

namespace sluice {

bool CodeSettings::operator==(const CodeSettings& other) const {
  const auto bits = [](const CodeSettings& one) { return std::bit_cast<std::uint64_t>(one.rule.reduction.factor); };
  return bits(*this) == bits(other) && rule == other.rule && wide_scratch == other.wide_scratch &&
         slice_elements == other.slice_elements && window == other.window;
}

void BoundCode::bind(const Program& program, const Layout& layout, const CodeSettings& settings) {
  program_ = &program;
  settings_ = settings;
  element_bytes_ = element_bytes(settings.rule.type);
  accumulator_bytes_ = accumulator_bytes(settings.rule.type);
  values_in_turn_ = kTurnBytes / element_bytes_;
  scratch_slice_bytes_ = static_cast<std::size_t>(program.shape.scratch_chunks) * settings.slice_elements *
                         value_bytes(form_of(Buffer::scratch));
  const std::size_t slice = settings.slice_elements;
  slices_ = layout.chunk_count_max() / slice + (layout.chunk_count_max() % slice != 0 ? 1 : 0);

  steps_.clear();
  for (const ProgramStep& step : program.steps)
    steps_.push_back({layout.of(step.extent.buffer, step.extent.chunk).count, step.first_action, step.actions});
  operands_.clear();
  combines_.clear();
  for (const CombineAction& action : program.combines) combines_.push_back(make(action, layout));
  first_offer_ = static_cast<std::uint32_t>(operands_.size());
  for (const Operand& offer : program.offers) operands_.push_back(place(offer, layout));
}

Form BoundCode::form_of(Buffer buffer) const {
  return buffer == Buffer::scratch && settings_.wide_scratch ? Form::accumulator : Form::element;
}

CodeOperand BoundCode::place(const Operand& operand, const Layout& layout) const {
  CodeOperand code;
  code.message = operand.message;
  code.leaf = operand.leaf;
  code.direct = operand.direct;
  code.last = operand.last;
  code.lent = operand.lent;
  code.form = form_of(operand.buffer);
  code.buffer = operand.buffer;
  code.flow = operand.flow;
  code.depth = operand.depth;
  code.offer = operand.offer;
  if (operand.message && !operand.lent) return code;
  const std::size_t values = operand.buffer == Buffer::scratch
                                 ? static_cast<std::size_t>(operand.chunk) * settings_.slice_elements
                                 : layout.of(operand.buffer, operand.chunk).offset;
  code.offset = values * value_bytes(code.form);
  return code;
}

CodeCombine BoundCode::make(const CombineAction& action, const Layout& layout) {
  CodeCombine code;
  code.first = static_cast<std::uint32_t>(operands_.size());
  code.sources = static_cast<std::uint16_t>(action.from.size());
  code.targets = static_cast<std::uint16_t>(action.to.size());
  code.rule = settings_.rule;
  code.rule.tree = action.tree;
  code.rule.final = action.final;
  sources_.clear();
  targets_.clear();
  for (const Operand& from : action.from) {
    operands_.push_back(place(from, layout));
    sources_.push_back({nullptr, operands_.back().form, from.leaf});
  }
  for (const Operand& to : action.to) {
    operands_.push_back(place(to, layout));
    targets_.push_back({nullptr, operands_.back().form, false});
  }
  code.way = way_of(code.rule, sources_, targets_);
  return code;
}

}  // namespace sluice
