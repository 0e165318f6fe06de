#include "comm/executor/collective_operation.h"

#include "comm/executor/communicator_state.h"

namespace sluice::detail {

void CollectiveOperation::bind(RunBinding binding) {
  if (const std::size_t bytes = scratch_bytes(binding); bytes > scratch_.size()) scratch_.resize(bytes);
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

void CollectiveOperation::give_back() { communicator().recycle(this); }

}  // namespace sluice::detail
