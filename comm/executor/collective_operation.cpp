#include "comm/executor/collective_operation.h"

#include <numeric>

#include "comm/executor/communicator_state.h"

namespace sluice::detail {

Layout CollectiveOperation::keep_blocks(const ScheduleShape& shape, const Call& call, const CallExtent& extent) {
  const auto keep = [](const Blocks& blocks, std::vector<std::size_t>& counts, std::vector<std::size_t>& offsets) {
    counts.assign(blocks.counts.begin(), blocks.counts.end());
    offsets.assign(blocks.offsets.begin(), blocks.offsets.end());
    if (!offsets.empty()) return;
    offsets.resize(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), std::size_t{0});
  };
  keep(extent.has_in ? call.in_blocks : Blocks{}, in_counts_, in_offsets_);
  keep(extent.has_out ? call.out_blocks : Blocks{}, out_counts_, out_offsets_);
  return Layout::uneven(shape, element_bytes(call.type), {in_counts_, in_offsets_}, {out_counts_, out_offsets_},
                        call.count);
}

std::shared_ptr<const BoundCode> CollectiveOperation::make_code(const Program& program, const Layout& layout,
                                                                const CodeSettings& settings) {
  if (uneven_code_ == nullptr) uneven_code_ = std::make_shared<BoundCode>();
  uneven_code_->bind(program, layout, settings);
  return uneven_code_;
}

void CollectiveOperation::bind(const std::shared_ptr<const BoundCode>& code, RunBinding& binding) {
  if (code_ != code) code_ = code;
  if (const std::size_t bytes = code_->scratch_bytes(); bytes > scratch_.size()) scratch_.resize(bytes);
  binding.code = code_.get();
  binding.scratch = scratch_.data();
  run_.bind(binding);
}

std::string CollectiveOperation::fault_text() const {
  const RunFault& fault = run_.fault();
  const std::string peer = std::to_string(fault.peer);
  const std::string me = std::to_string(communicator().rank());
  switch (fault.kind) {
    case RunFault::Kind::bytes:
      return "rank " + peer + " sent a slice of " + std::to_string(fault.got) + " bytes, rank " + me + " expected " +
             std::to_string(fault.expected) + ": the two ranks disagree on a count";
    case RunFault::Kind::window:
      return "rank " + peer + " described a place outside of its arena (offset " + std::to_string(fault.got) + ")";
    case RunFault::Kind::digest:
    case RunFault::Kind::none: return {};
  }
  return {};
}

// The pool may go with its last operation.
void CollectiveOperation::give_back() {
  const std::shared_ptr<OperationPool> pool = pool_;
  pool->give(this);
}

}  // namespace sluice::detail
