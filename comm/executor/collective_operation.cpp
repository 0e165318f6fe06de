#include "comm/executor/collective_operation.h"

#include <algorithm>
#include <numeric>

#include "comm/executor/communicator_state.h"

namespace sluice::detail {

// Keeps a copy of the table. True: it is what was kept before.
bool CollectiveOperation::KeptBlocks::keep(const Blocks& blocks) {
  const auto same = [](const std::vector<std::size_t>& kept, std::span<const std::size_t> given) {
    return std::equal(kept.begin(), kept.end(), given.begin(), given.end());
  };
  if (same(given_counts, blocks.counts) && same(given_offsets, blocks.offsets)) return true;
  given_counts.assign(blocks.counts.begin(), blocks.counts.end());
  given_offsets.assign(blocks.offsets.begin(), blocks.offsets.end());
  offsets = given_offsets;
  if (!offsets.empty()) return false;
  offsets.resize(given_counts.size());
  std::exclusive_scan(given_counts.begin(), given_counts.end(), offsets.begin(), std::size_t{0});
  return false;
}

const std::shared_ptr<BoundCode>& CollectiveOperation::uneven_code(const Program& program, const CodeSettings& settings,
                                                                   const Call& call, const CallExtent& extent) {
  const bool same_in = in_blocks_.keep(extent.has_in ? call.in_blocks : Blocks{});
  const bool same_out = out_blocks_.keep(extent.has_out ? call.out_blocks : Blocks{});
  if (uneven_code_ != nullptr && same_in && same_out && call.count == single_ && &uneven_code_->program() == &program &&
      uneven_code_->settings() == settings)
    return uneven_code_;
  if (uneven_code_ == nullptr) uneven_code_ = std::make_shared<BoundCode>();
  single_ = call.count;
  const Layout layout =
      Layout::uneven(program.shape, element_bytes(call.type), {in_blocks_.given_counts, in_blocks_.offsets},
                     {out_blocks_.given_counts, out_blocks_.offsets}, call.count);
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

}  // namespace sluice::detail
