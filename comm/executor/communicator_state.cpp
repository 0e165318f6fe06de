// Posting: from a checked call to an operation in the engine. What happens then is in communicator_progress.cpp.
#include "comm/executor/communicator_state.h"

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "comm/executor/call.h"
#include "comm/executor/runtime_state.h"
#include "comm/lower/program.h"
#include "device/cpu/cache_size.h"

namespace sluice::detail {
namespace {

constexpr std::size_t kSliceUnit = 4096;  // bytes

}  // namespace

CommunicatorState::CommunicatorState(std::shared_ptr<RuntimeState> runtime, Identity identity)
    : runtime_(std::move(runtime)),
      identity_(std::move(identity)),
      lane_(runtime_->lane_state(identity_.lane)),
      recorder_(runtime_->traces().recorder()),
      trace_number_(runtime_->traces().next_number()),
      messages_(ranks()) {
  stream_from_ = stream_from();
  leaves_host_ = std::any_of(identity_.members.begin(), identity_.members.end(), [this](Rank member) {
    const auto transport = runtime_->transport_to(member);
    return transport.ok() && (*transport)->link_class() == LinkClass::tcp;
  });
  const LinkModel link = runtime_->link_model(identity_.members);
  slice_bytes_min_ = (static_cast<std::size_t>(2 * link.latency_seconds * link.bytes_per_second) + kSliceUnit - 1) /
                     kSliceUnit * kSliceUnit;
  message_print_.communicator = identity_.id;
  message_print_.kind = OperationKind::point_to_point;
  message_digest_ = digest(message_print_);
}

CommunicatorState::~CommunicatorState() {
  runtime_->unlist(identity_.id, *this);
  runtime_->engine().with_token([this] {
    for (CommunicatorState* one : call_lanes_.all()) runtime_->engine().remove(*one);
    runtime_->engine().remove(*this);
    runtime_->traces().retire(describe(runtime_->clock().now()));
    broken_.store(true, std::memory_order_release);
  });
  call_lanes_.clear();
  pool_->close();
  std::vector<SentOn> sent_on;
  if (status_.ok())
    for (const auto& [key, flow] : out_flows_) sent_on.push_back({world_rank(key.first), flow});
  runtime_->forget(identity_.id, std::move(sent_on));
}

std::optional<Rank> CommunicatorState::rank_of_world(Rank world_rank) const {
  const auto at = std::find(identity_.members.begin(), identity_.members.end(), world_rank);
  if (at == identity_.members.end()) return std::nullopt;
  return static_cast<Rank>(at - identity_.members.begin());
}

void CommunicatorState::mark_closed() {
  closed_ = true;
  for (CommunicatorState* one : call_lanes_.all()) one->closed_ = true;
}

std::vector<CommunicatorState*> CommunicatorState::used() {
  std::vector<CommunicatorState*> all{this};
  for (CommunicatorState* one : call_lanes_.all())
    if (one->sequence_ != 0) all.push_back(one);
  return all;
}

Status CommunicatorState::check_callable() const {
  SLUICE_TRY(runtime_->check_not_forked());
  if (broken()) return status();
  if (closed_)
    return {Code::invalid_argument,
            "communicator '" + identity_.name + "' on rank " + std::to_string(rank()) + " was closed"};
  return {};
}

Nanoseconds CommunicatorState::deadline_of(const CallOptions& options) const {
  return options.deadline.value_or(identity_.deadline);
}

// From here on, what all ranks of this host read and write does not fit their cache.
std::size_t CommunicatorState::stream_from() const {
  const Control& control = runtime_->control();
  const std::uint64_t host = control.peer(control.rank()).host_id;
  const auto here = std::count_if(identity_.members.begin(), identity_.members.end(),
                                  [&](Rank member) { return control.peer(member).host_id == host; });
  const std::size_t wanted = runtime_->config().bytes(Setting::stream_bytes);
  return (wanted != 0 ? wanted : last_level_cache_bytes()) /
         static_cast<std::size_t>(std::max<std::ptrdiff_t>(here, 1));
}

// Flows are opened when a program or a send first needs them; a transport is only touched under the token.
Result<OutFlow*> CommunicatorState::out_flow(Rank peer, std::uint8_t channel) {
  OutFlow*& flow = out_flows_[{peer, channel}];
  if (flow != nullptr) return flow;
  SLUICE_TRY_ASSIGN(Transport * transport, runtime_->transport_to(world_rank(peer)));
  Result<OutFlow*> opened = flow;
  runtime_->engine().with_token([&] {
    transport->use_lane(identity_.id, lane_.rules);
    opened = transport->open_out(world_rank(peer), flow_id(channel), ring_shape(runtime_->config()));
  });
  if (opened.ok()) flow = *opened;
  return opened;
}

Result<InFlow*> CommunicatorState::in_flow(Rank peer, std::uint8_t channel) {
  InFlow*& flow = in_flows_[{peer, channel}];
  if (flow != nullptr) return flow;
  SLUICE_TRY_ASSIGN(Transport * transport, runtime_->transport_to(world_rank(peer)));
  Result<InFlow*> opened = flow;
  runtime_->engine().with_token(
      [&] { opened = transport->open_in(world_rank(peer), flow_id(channel), ring_shape(runtime_->config())); });
  if (opened.ok()) flow = *opened;
  return opened;
}

Result<CollectiveOperation*> CommunicatorState::prepare(const Call& call, const CallOptions& options) {
  SLUICE_TRY(check_callable());
  SLUICE_TRY_ASSIGN(Plan * plan, plan_of(call, options));
  CallExtent extent = plan->extent;
  if (call.uneven) {
    SLUICE_TRY_ASSIGN(extent, check_call(call, rank(), ranks()));
  } else {
    SLUICE_TRY(check_pointers(call, extent, rank()));
  }
  SLUICE_TRY_ASSIGN(const bool in_place, check_in_place(call, extent, rank(), ranks()));
  BoundProgram*& bound = plan->programs[in_place ? 1 : 0];
  if (bound == nullptr || (!call.uneven && plan->codes[in_place ? 1 : 0] == nullptr))
    SLUICE_TRY(complete(*plan, call, in_place));

  Fingerprint print = plan->print;
  std::uint64_t hash = plan->print_hash;
  if (call.shared_blocks) {
    print.blocks = hash_counts((call.in_blocks.counts.empty() ? call.out_blocks : call.in_blocks).counts);
    hash = hash_but_number(print);
  }
  print.sequence = ++sequence_;

  CollectiveOperation* operation = pool_->take<CollectiveOperation>(*this);
  operation->prepare(print, deadline_of(options), runtime_->clock().ticks());
  RunBinding binding;
  // In place a line is in the cache by the time it is written.
  binding.stream = !in_place && extent.in_bytes + extent.out_bytes >= stream_from_;
  binding.in = static_cast<const std::byte*>(call.in);
  binding.out = static_cast<std::byte*>(call.out);
  binding.digest = digest(hash, print.sequence);
  binding.out_flows = bound->out_flows;
  binding.in_flows = bound->in_flows;
  binding.describe_from = std::min(bound->describe_from, plan->settings.slice_elements * element_bytes(call.type));
  if (call.uneven)
    operation->bind(operation->uneven_code(bound->program, plan->settings, call, extent), binding);
  else
    operation->bind(plan->codes[in_place ? 1 : 0], binding);
  remember(print);
  return operation;
}

Work CommunicatorState::post(const Call& call, const CallOptions& options) {
  auto operation = prepare(call, options);
  if (!operation.ok()) return Work(operation.status());
  return submit(*operation);
}

Work CommunicatorState::submit(Operation* operation) {
  if (!runtime_->engine().post(operation)) return Work(operation);
  operation->give_back();
  return Work(Status());
}

template <typename Message, typename Data>
Work CommunicatorState::submit_message(Data* data, std::size_t count, DataType type, MessagePeer& peer,
                                       const CallOptions& options) {
  Message* message = pool_->take<Message>(*this);
  message->prepare(message_print_, deadline_of(options), runtime_->clock().ticks());
  message->bind(data, count, type, peer, message_digest_);
  return submit(message);
}

Work CommunicatorState::post_send(const void* data, std::size_t count, DataType type, Rank to,
                                  const CallOptions& options) {
  if (Status checked = check_callable(); !checked.ok()) return Work(checked);
  if (Status checked = check_message({"send", "destination"}, {data, count, type, to}, rank(), ranks()); !checked.ok())
    return Work(checked);
  MessagePeer& peer = messages_.peer(to);
  if (peer.out == nullptr && to != rank()) {
    auto found = out_flow(to, kPointToPointChannel);
    if (!found.ok()) return Work(found.status());
    peer.out = *found;
  }
  return submit_message<SendOperation>(data, count, type, peer, options);
}

Work CommunicatorState::post_receive(void* data, std::size_t count, DataType type, Rank from,
                                     const CallOptions& options) {
  if (Status checked = check_callable(); !checked.ok()) return Work(checked);
  if (Status checked = check_message({"receive", "source"}, {data, count, type, from}, rank(), ranks()); !checked.ok())
    return Work(checked);
  MessagePeer& peer = messages_.peer(from);
  if (peer.in == nullptr && from != rank()) {
    auto found = in_flow(from, kPointToPointChannel);
    if (!found.ok()) return Work(found.status());
    peer.in = *found;
  }
  return submit_message<ReceiveOperation>(data, count, type, peer, options);
}

}  // namespace sluice::detail
