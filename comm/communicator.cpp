// The public face: each call says what it is (a Call) and hands it to the state behind the handle.
#include "comm/communicator.h"

#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"

namespace sluice {
namespace {

using detail::Call;

Call reduction_call(OperationKind kind, Collective collective, const InOut& buffers, Reduction reduction,
                    Rank root = -1) {
  Call call;
  call.kind = kind;
  call.collective = collective;
  call.in = buffers.in;
  call.out = buffers.out;
  call.count = buffers.count;
  call.type = buffers.type;
  call.reduction = reduction;
  call.root = root;
  return call;
}

Call plain_call(OperationKind kind, Collective collective, const InOut& buffers, Rank root = -1) {
  return reduction_call(kind, collective, buffers, ReduceOp::sum, root);
}

Call uneven_call(OperationKind kind, Collective collective, const InOut& buffers, Blocks in, Blocks out,
                 Rank root = -1) {
  Call call = plain_call(kind, collective, buffers, root);
  call.uneven = true;
  call.in_blocks = in;
  call.out_blocks = out;
  return call;
}

// This rank's own block, where the table is well formed; the checks refuse it otherwise.
std::size_t own_count(const Blocks& blocks, Rank rank) {
  return static_cast<std::size_t>(rank) < blocks.counts.size() ? blocks.counts[static_cast<std::size_t>(rank)] : 0;
}

// An all-reduce of one byte that the communicator owns: nobody passes before everybody came.
Call barrier_call(detail::CommunicatorState& state) {
  std::uint8_t* const byte = state.barrier_byte();
  return reduction_call(OperationKind::barrier, Collective::all_reduce, {byte, byte, 1, DataType::uint8},
                        ReduceOp::bor);
}

Status no_communicator() {
  return {Code::invalid_argument, "this Communicator is empty (default made, or of a split with kNoColor)"};
}

// Here or, where the call names a lane, at the communicator's on that lane. `act` posts; out of the way of who names none.
template <typename Act>
[[gnu::noinline]] Work post_elsewhere(detail::CommunicatorState* state, const CallOptions& options, const Act& act) {
  if (state == nullptr) return Work(no_communicator());
  const auto place = options.lane ? state->of_lane(*options.lane) : Result(state);
  return place.ok() ? act(**place) : Work(place.status());
}

template <typename Act>
[[gnu::always_inline]] inline Work on_lane(detail::CommunicatorState* state, const CallOptions& options,
                                           const Act& act) {
  if (state != nullptr && !options.lane) [[likely]]
    return act(*state);
  return post_elsewhere(state, options, act);
}

[[gnu::always_inline]] inline Work post(detail::CommunicatorState* state, const Call& call,
                                        const CallOptions& options) {
  return on_lane(state, options, [&](detail::CommunicatorState& there) { return there.post(call, options); });
}

}  // namespace

Communicator::Communicator() = default;
Communicator::Communicator(std::shared_ptr<detail::CommunicatorState> state) : state_(std::move(state)) {}

Rank Communicator::rank() const { return state_->rank(); }
int Communicator::ranks() const { return state_->ranks(); }
Rank Communicator::world_rank(Rank rank) const { return state_->world_rank(rank); }
const std::string& Communicator::name() const { return state_->identity().name; }
const Lane& Communicator::lane() const { return state_->lane(); }

Work Communicator::all_reduce(InOut buffers, Reduction reduction, const CallOptions& options) {
  return post(state_.get(), reduction_call(OperationKind::all_reduce, Collective::all_reduce, buffers, reduction),
              options);
}

Work Communicator::reduce_scatter(InOut buffers, Reduction reduction, const CallOptions& options) {
  return post(state_.get(),
              reduction_call(OperationKind::reduce_scatter, Collective::reduce_scatter, buffers, reduction), options);
}

Work Communicator::all_gather(InOut buffers, const CallOptions& options) {
  return post(state_.get(), plain_call(OperationKind::all_gather, Collective::all_gather, buffers), options);
}

Work Communicator::broadcast(InOut buffers, Rank root, const CallOptions& options) {
  return post(state_.get(), plain_call(OperationKind::broadcast, Collective::broadcast, buffers, root), options);
}

Work Communicator::reduce(InOut buffers, Reduction reduction, Rank root, const CallOptions& options) {
  return post(state_.get(), reduction_call(OperationKind::reduce, Collective::reduce, buffers, reduction, root),
              options);
}

Work Communicator::gather(InOut buffers, Rank root, const CallOptions& options) {
  return post(state_.get(), plain_call(OperationKind::gather, Collective::gather, buffers, root), options);
}

Work Communicator::scatter(InOut buffers, Rank root, const CallOptions& options) {
  return post(state_.get(), plain_call(OperationKind::scatter, Collective::scatter, buffers, root), options);
}

Work Communicator::all_to_all(InOut buffers, const CallOptions& options) {
  return post(state_.get(), plain_call(OperationKind::all_to_all, Collective::all_to_all, buffers), options);
}

Work Communicator::all_gather_v(InOut buffers, Blocks blocks, const CallOptions& options) {
  if (!valid()) return Work(no_communicator());
  Call call = uneven_call(OperationKind::all_gather_v, Collective::all_gather, buffers, {}, blocks);
  call.shared_blocks = true;
  call.count = own_count(blocks, rank());
  return post(state_.get(), call, options);
}

Work Communicator::reduce_scatter_v(InOut buffers, Blocks blocks, Reduction reduction, const CallOptions& options) {
  if (!valid()) return Work(no_communicator());
  Call call = uneven_call(OperationKind::reduce_scatter_v, Collective::reduce_scatter, buffers, blocks, {});
  call.reduction = reduction;
  call.shared_blocks = true;
  call.count = own_count(blocks, rank());
  return post(state_.get(), call, options);
}

Work Communicator::gather_v(InOut buffers, Blocks blocks, Rank root, const CallOptions& options) {
  return post(state_.get(), uneven_call(OperationKind::gather_v, Collective::gather, buffers, {}, blocks, root),
              options);
}

Work Communicator::scatter_v(InOut buffers, Blocks blocks, Rank root, const CallOptions& options) {
  return post(state_.get(), uneven_call(OperationKind::scatter_v, Collective::scatter, buffers, blocks, {}, root),
              options);
}

Work Communicator::all_to_all_v(InOut buffers, Blocks send, Blocks receive, const CallOptions& options) {
  return post(state_.get(), uneven_call(OperationKind::all_to_all_v, Collective::all_to_all, buffers, send, receive),
              options);
}

Work Communicator::send(const void* data, std::size_t count, DataType type, Rank to, const CallOptions& options) {
  if (valid() && !options.lane) return state_->post_send(data, count, type, to, options);
  return post_elsewhere(state_.get(), options,
                        [=](auto& there) { return there.post_send(data, count, type, to, options); });
}

Work Communicator::receive(void* data, std::size_t count, DataType type, Rank from, const CallOptions& options) {
  if (valid() && !options.lane) return state_->post_receive(data, count, type, from, options);
  return post_elsewhere(state_.get(), options,
                        [=](auto& there) { return there.post_receive(data, count, type, from, options); });
}

Work Communicator::barrier(const CallOptions& options) {
  return on_lane(state_.get(), options, [&](auto& there) { return there.post(barrier_call(there), options); });
}

void Communicator::abort(const std::string& why) {
  if (!valid()) return;
  state_->break_with(
      {Code::aborted, "communicator '" + name() + "': rank " + std::to_string(rank()) + " aborted it: " + why}, true);
}

Status Communicator::status() const { return valid() ? state_->status() : no_communicator(); }

Status Communicator::close() {
  if (!valid()) return no_communicator();
  Group barriers;
  for (detail::CommunicatorState* one : state_->used()) barriers.add(one->post(barrier_call(*one), {}));
  SLUICE_TRY(barriers.wait());
  state_->mark_closed();
  return {};
}

Result<WindowBuffer> Communicator::allocate(std::size_t bytes) {
  if (!valid()) return no_communicator().error();
  bool shared = false;
  void* memory = state_->runtime().allocate_window(bytes, shared);
  if (memory == nullptr)
    return Error{Code::out_of_resource,
                 "allocate on rank " + std::to_string(rank()) + ": no memory for " + std::to_string(bytes) + " bytes"};
  return WindowBuffer(state_->shared_runtime(), memory, bytes, shared);
}

}  // namespace sluice
