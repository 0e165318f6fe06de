// A program bound to a layout and a rule: where each of its operands lies, in bytes, and how each of its combines goes, found out
// once and not with every message. A plan keeps its code; a v-form makes one per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/executor/layout.h"
#include "comm/lower/program.h"
#include "device/cpu/combine.h"

namespace sluice {

inline constexpr std::size_t kTurnBytes = 64 << 10;  // moved in one turn: then others may be due

struct CodeSettings {
  CombineRule rule;           // type, reduction, ranks, canonical_nan; tree and final come from the program
  bool wide_scratch = false;  // scratch holds accumulators (Order::canonical)
  std::size_t slice_elements = 1;
  int window = 1;
  bool operator==(const CodeSettings& other) const;  // a factor of -0 is another than 0
};

struct CodeOperand {
  bool message = false;
  bool leaf = false;
  bool direct = false;
  bool last = false;
  bool lent = false;
  Form form = Form::element;
  Buffer buffer = Buffer::input;
  std::uint16_t flow = 0;
  std::uint16_t depth = 0;
  std::uint16_t offer = 0;
  std::size_t offset = 0;  // bytes from the start of `buffer` to the first slice, of a local or lent place
};

struct CodeCombine {
  std::uint32_t first = 0;  // operand; the sources, then the targets
  std::uint16_t sources = 0;
  std::uint16_t targets = 0;
  CombineRule rule;
  CombineWay way;
};

struct CodeStep {
  std::size_t count = 0;  // values of all slices
  std::uint32_t first_action = 0;
  std::uint32_t actions = 0;
};

class BoundCode {
 public:
  // Replaces what was there; allocates nothing if that was as large. Borrows the program.
  void bind(const Program& program, const Layout& layout, const CodeSettings& settings);

  const Program& program() const { return *program_; }
  const CodeSettings& settings() const { return settings_; }
  std::size_t slices() const { return slices_; }
  std::uint64_t values_in_turn() const { return values_in_turn_; }  // of kTurnBytes
  std::size_t value_bytes(Form form) const { return form == Form::element ? element_bytes_ : accumulator_bytes_; }
  std::size_t scratch_slice_bytes() const { return scratch_slice_bytes_; }  // of one slice in the window
  std::size_t scratch_bytes() const { return scratch_slice_bytes_ * static_cast<std::size_t>(settings_.window); }

  std::span<const CodeStep> steps() const { return steps_; }
  const CodeOperand& operand(std::uint32_t index) const { return operands_[index]; }
  const CodeOperand& offer(std::uint32_t index) const { return operands_[first_offer_ + index]; }
  const CodeCombine& combine(std::uint32_t index) const { return combines_[index]; }

 private:
  CodeOperand place(const Operand& operand, const Layout& layout) const;
  CodeCombine make(const CombineAction& action, const Layout& layout);
  Form form_of(Buffer buffer) const;

  const Program* program_ = nullptr;
  CodeSettings settings_;
  std::size_t element_bytes_ = 1;
  std::size_t accumulator_bytes_ = 1;
  std::size_t slices_ = 0;
  std::uint64_t values_in_turn_ = 1;
  std::size_t scratch_slice_bytes_ = 0;
  std::uint32_t first_offer_ = 0;
  std::vector<CodeStep> steps_;  // as Program::steps
  std::vector<CodeOperand> operands_;
  std::vector<CodeCombine> combines_;   // as Program::combines
  std::vector<CombineSource> sources_;  // while a combine is made
  std::vector<CombineTarget> targets_;
};

}  // namespace sluice
