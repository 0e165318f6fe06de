// Posting: from a checked call to an operation in the engine. What happens then is in communicator_progress.cpp.
#include "comm/executor/communicator_state.h"

#include <algorithm>
#include <bit>

#include "base/log.h"
#include "comm/executor/call.h"
#include "comm/executor/runtime_state.h"
#include "comm/lower/program.h"

namespace sluice::detail {
namespace {

constexpr std::uint8_t kCollectiveChannel = 0;
constexpr std::size_t kSliceBytesMin = 16 << 10;

bool sums(const Call& call) { return is_reduction(call.collective) && call.kind != OperationKind::barrier; }

}  // namespace

CommunicatorState::CommunicatorState(std::shared_ptr<RuntimeState> runtime, Identity identity)
    : runtime_(std::move(runtime)), identity_(std::move(identity)) {}

CommunicatorState::~CommunicatorState() {
  runtime_->unlist(identity_.id);
  runtime_->engine().with_token([this] {
    broken_.store(true, std::memory_order_release);
    runtime_->engine().remove(*this);
  });
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

Result<const Algorithm*> CommunicatorState::choose(const Call& call, Order order, const std::string& forced) {
  TuneRequest request{call.collective, ranks(), order, call.uneven, sums(call), 0};
  const bool whole = call.collective == Collective::all_reduce || call.collective == Collective::broadcast ||
                     call.collective == Collective::reduce;
  if (!call.uneven)
    request.bytes =
        static_cast<double>(call.count) * static_cast<double>(element_bytes(call.type)) * (whole ? 1 : ranks());
  std::string wanted = forced;
  if (wanted.empty()) {
    SLUICE_TRY_ASSIGN(wanted, forced_algorithm(runtime_->config().text(Setting::algorithm), call.collective));
    // A setting without a collective's name is a wish for those that have it.
    if (!wanted.empty() && find_algorithm(call.collective, wanted) == nullptr) wanted.clear();
  }
  if (wanted.empty()) return sluice::choose(request, runtime_->link_model(identity_.members));
  const Algorithm* algorithm = find_algorithm(call.collective, wanted);
  if (algorithm == nullptr)
    return Error{Code::unsupported, "algorithm '" + wanted + "' is not offered for " +
                                        std::string(name(call.collective)) + " (sluice explain lists those that are)"};
  SLUICE_TRY(check_offer(*algorithm, request));
  return algorithm;
}

RingShape CommunicatorState::ring_shape() const {
  const Config& config = runtime_->config();
  return {static_cast<std::uint32_t>(config.number(Setting::slots)),
          static_cast<std::uint32_t>(config.bytes(Setting::slot_bytes) / kCacheLine * kCacheLine)};
}

// Flows are opened when a program or a send first needs them; a transport is only touched under the token.
Result<OutFlow*> CommunicatorState::out_flow(Rank peer, std::uint8_t channel) {
  OutFlow*& flow = out_flows_[{peer, channel}];
  if (flow != nullptr) return flow;
  SLUICE_TRY_ASSIGN(Transport * transport, runtime_->transport_to(world_rank(peer)));
  const FlowId id{identity_.id, static_cast<std::uint8_t>(lane().priority), channel};
  Result<OutFlow*> opened = flow;
  runtime_->engine().with_token([&] { opened = transport->open_out(world_rank(peer), id, ring_shape()); });
  if (opened.ok()) flow = *opened;
  return opened;
}

Result<InFlow*> CommunicatorState::in_flow(Rank peer, std::uint8_t channel) {
  InFlow*& flow = in_flows_[{peer, channel}];
  if (flow != nullptr) return flow;
  SLUICE_TRY_ASSIGN(Transport * transport, runtime_->transport_to(world_rank(peer)));
  const FlowId id{identity_.id, static_cast<std::uint8_t>(lane().priority), channel};
  Result<InFlow*> opened = flow;
  runtime_->engine().with_token([&] { opened = transport->open_in(world_rank(peer), id, ring_shape()); });
  if (opened.ok()) flow = *opened;
  return opened;
}

Result<CommunicatorState::BoundProgram*> CommunicatorState::program(const ProgramKey& key) {
  std::unique_ptr<BoundProgram>& cached = programs_[key];
  if (cached != nullptr) return cached.get();
  SLUICE_TRY_ASSIGN(const Schedule schedule,
                    key.algorithm->build({key.collective, ranks(), std::max(key.root, 0), key.order, rank()}));
  auto bound = std::make_unique<BoundProgram>();
  SLUICE_TRY_ASSIGN(bound->program, lower(schedule, rank(), key.in_place));
  if (const auto slots = runtime_->config().number(Setting::slots); bound->program.credits > slots)
    return Error{Code::unsupported, "algorithm '" + std::string(key.algorithm->name) + "' on " +
                                        std::to_string(ranks()) + " ranks needs " +
                                        std::to_string(bound->program.credits) + " slots a flow; SLUICE_SLOTS is " +
                                        std::to_string(slots)};
  for (const Rank peer : bound->program.out_peers) {
    SLUICE_TRY_ASSIGN(OutFlow * flow, out_flow(peer, kCollectiveChannel));
    bound->out_flows.push_back(flow);
  }
  for (const Rank peer : bound->program.in_peers) {
    SLUICE_TRY_ASSIGN(InFlow * flow, in_flow(peer, kCollectiveChannel));
    bound->in_flows.push_back(flow);
  }
  log(LogLevel::info, runtime_->world_rank(),
      std::string(name(key.collective)) + " on communicator '" + identity_.name + "' uses " +
          std::string(key.algorithm->name));
  cached = std::move(bound);
  return cached.get();
}

// The same at every rank: it depends on the setting, or on a count that all ranks share.
std::size_t CommunicatorState::slice_bytes(const Call& call, int chunks) const {
  const Config& config = runtime_->config();
  const std::size_t slot = config.bytes(Setting::slot_bytes) / kCacheLine * kCacheLine;
  if (const std::size_t wanted = config.bytes(Setting::slice_bytes); wanted != 0)
    return std::clamp<std::size_t>(wanted, sizeof(double), slot);
  if (call.uneven) return slot;
  const std::size_t chunk = call.count * element_bytes(call.type) / static_cast<std::size_t>(chunks);
  const auto window = static_cast<std::size_t>(config.number(Setting::slices_in_flight));
  const std::size_t share = (chunk / window + kCacheLine - 1) / kCacheLine * kCacheLine;
  return std::min(std::max(share, kSliceBytesMin), slot);
}

CollectiveOperation* CommunicatorState::take_operation() {
  const std::lock_guard lock(mutex_);
  if (pool_.empty()) return new CollectiveOperation(*this);
  CollectiveOperation* operation = pool_.back().release();
  pool_.pop_back();
  return operation;
}

void CommunicatorState::recycle(CollectiveOperation* operation) {
  const std::lock_guard lock(mutex_);
  pool_.emplace_back(operation);
}

Result<CollectiveOperation*> CommunicatorState::prepare(const Call& call, const CallOptions& options) {
  SLUICE_TRY(check_callable());
  SLUICE_TRY_ASSIGN(const CallExtent extent, check_call(call, rank(), ranks()));
  SLUICE_TRY_ASSIGN(const bool in_place, check_in_place(call, extent, rank(), ranks()));
  const Order fallback = runtime_->config().text(Setting::order) == "canonical" ? Order::canonical : Order::fast;
  const Order order = sums(call) ? options.order.value_or(fallback) : Order::fast;
  SLUICE_TRY_ASSIGN(const Algorithm* algorithm, choose(call, order, options.algorithm));
  SLUICE_TRY_ASSIGN(BoundProgram * bound, program({call.collective, call.root, order, in_place, algorithm}));

  const std::size_t bytes = slice_bytes(call, bound->program.shape.chunks);
  Fingerprint print;
  print.communicator = identity_.id;
  print.sequence = ++sequence_;
  print.kind = call.kind;
  print.type = call.type;
  print.root = call.root;
  print.algorithm = hash_word(algorithm->name);
  print.slice_bytes = static_cast<std::uint32_t>(bytes);
  print.count = call.uneven ? 0 : call.count;
  if (call.shared_blocks)
    print.blocks = hash_counts((call.in_blocks.counts.empty() ? call.out_blocks : call.in_blocks).counts);
  if (sums(call)) {
    print.op = call.reduction.op;
    print.order = order;
    print.factor = call.reduction.op == ReduceOp::premulsum ? std::bit_cast<std::uint64_t>(call.reduction.factor) : 0;
  }

  CollectiveOperation* operation = take_operation();
  operation->prepare(print, deadline_of(options), runtime_->clock().now());
  const auto keep = [](std::vector<std::size_t>& to, std::span<const std::size_t> from) {
    to.assign(from.begin(), from.end());
  };
  keep(operation->in_counts, call.in_blocks.counts);
  keep(operation->in_offsets, call.in_blocks.offsets);
  keep(operation->out_counts, call.out_blocks.counts);
  keep(operation->out_offsets, call.out_blocks.offsets);

  const ScheduleShape& shape = bound->program.shape;
  RunBinding binding;
  binding.program = &bound->program;
  binding.layout = call.uneven
                       ? Layout::uneven(shape, element_bytes(call.type), {operation->in_counts, operation->in_offsets},
                                        {operation->out_counts, operation->out_offsets}, call.count)
                       : Layout::even(shape, call.count, element_bytes(call.type));
  binding.in = static_cast<const std::byte*>(call.in);
  binding.out = static_cast<std::byte*>(call.out);
  binding.rule.type = call.type;
  binding.rule.reduction = call.reduction;
  binding.rule.ranks = ranks();
  binding.rule.canonical_nan = order == Order::canonical;
  binding.wide_scratch = order == Order::canonical;
  const std::size_t value =
      binding.wide_scratch && shape.scratch_chunks > 0 ? accumulator_bytes(call.type) : element_bytes(call.type);
  binding.slice_elements = std::max<std::size_t>(1, bytes / value);
  binding.window = static_cast<int>(runtime_->config().number(Setting::slices_in_flight));
  binding.digest = digest(print);
  binding.out_flows = bound->out_flows;
  binding.in_flows = bound->in_flows;
  operation->bind(binding);
  remember(print);
  return operation;
}

Work CommunicatorState::post(const Call& call, const CallOptions& options) {
  auto operation = prepare(call, options);
  if (!operation.ok()) return Work(operation.status());
  return submit(*operation);
}

Work CommunicatorState::submit(Operation* operation) {
  runtime_->engine().post(operation);
  return Work(operation);
}

Fingerprint CommunicatorState::point_to_point_print() const {
  Fingerprint print;
  print.communicator = identity_.id;
  print.kind = OperationKind::point_to_point;
  return print;
}

Work CommunicatorState::post_send(const void* data, std::size_t count, DataType type, Rank to,
                                  const CallOptions& options) {
  if (Status checked = check_callable(); !checked.ok()) return Work(checked);
  if (Status checked = check_message({"send", "destination"}, {data, count, type, to}, rank(), ranks()); !checked.ok())
    return Work(checked);
  OutFlow* flow = nullptr;
  if (to != rank()) {
    auto found = out_flow(to, kPointToPointChannel);
    if (!found.ok()) return Work(found.status());
    flow = *found;
  }
  auto operation = std::make_unique<SendOperation>(*this);
  const Fingerprint print = point_to_point_print();
  operation->prepare(print, deadline_of(options), runtime_->clock().now());
  operation->bind(data, count, type, to, flow, digest(print));
  return submit(operation.release());
}

Work CommunicatorState::post_receive(void* data, std::size_t count, DataType type, Rank from,
                                     const CallOptions& options) {
  if (Status checked = check_callable(); !checked.ok()) return Work(checked);
  if (Status checked = check_message({"receive", "source"}, {data, count, type, from}, rank(), ranks()); !checked.ok())
    return Work(checked);
  InFlow* flow = nullptr;
  if (from != rank()) {
    auto found = in_flow(from, kPointToPointChannel);
    if (!found.ok()) return Work(found.status());
    flow = *found;
  }
  auto operation = std::make_unique<ReceiveOperation>(*this);
  const Fingerprint print = point_to_point_print();
  operation->prepare(print, deadline_of(options), runtime_->clock().now());
  operation->bind(data, count, type, from, flow, digest(print));
  return submit(operation.release());
}

}  // namespace sluice::detail
