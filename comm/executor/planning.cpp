// From a call to its plan: which algorithm, lowered to which program, cut into which slices.
#include <algorithm>
#include <bit>

#include "base/log.h"
#include "comm/executor/call.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"

namespace sluice::detail {
namespace {

constexpr std::uint8_t kCollectiveChannel = 0;
constexpr std::size_t kSliceBytesMin = 16 << 10;
constexpr std::size_t kDescribeBytesMin = 1 << 10;
constexpr std::size_t kDescribeApartBytesMin = 16 << 10;

bool sums(const Call& call) { return is_reduction(call.collective) && call.kind != OperationKind::barrier; }

std::uint64_t factor_bits(const Reduction& reduction) {
  return reduction.op == ReduceOp::premulsum ? std::bit_cast<std::uint64_t>(reduction.factor) : 0;
}

}  // namespace

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

// Who reads our windows, and lets us write to its own: a matter of the link, which both ends see alike.
std::vector<bool> CommunicatorState::window_peers() const {
  std::vector<bool> windows;
  for (const Rank member : identity_.members) {
    const auto transport = runtime_->transport_to(member);
    windows.push_back(transport.ok() && (*transport)->capabilities(member).windows);
  }
  return windows;
}

// Whoever describes memory waits until it was read, which costs more than a small copy. Where the reader has something to send back,
// it is waited for anyway; but not if it may have no core yet.
std::size_t CommunicatorState::describe_from(const Program& program) const {
  const bool answered = std::all_of(program.out_peers.begin(), program.out_peers.end(), [&](Rank peer) {
    return std::find(program.in_peers.begin(), program.in_peers.end(), peer) != program.in_peers.end();
  });
  return answered && !runtime_->engine().crowded() ? kDescribeBytesMin : kDescribeApartBytesMin;
}

Result<BoundProgram*> CommunicatorState::program(const ProgramKey& key) {
  std::unique_ptr<BoundProgram>& cached = programs_[key];
  if (cached != nullptr) return cached.get();
  SLUICE_TRY_ASSIGN(const Schedule schedule,
                    key.algorithm->build({key.collective, ranks(), std::max(key.root, 0), key.order, rank()}));
  auto bound = std::make_unique<BoundProgram>();
  SLUICE_TRY_ASSIGN(bound->program, lower(schedule, rank(), {key.in_place, window_peers()}));
  if (const auto slots = runtime_->config().number(Setting::slots); bound->program.credits > slots)
    return Error{Code::unsupported, "algorithm '" + std::string(key.algorithm->name) + "' on " +
                                        std::to_string(ranks()) + " ranks needs " +
                                        std::to_string(bound->program.credits) + " slots a flow; SLUICE_SLOTS is " +
                                        std::to_string(slots)};
  bound->describe_from = describe_from(bound->program);
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
  const std::size_t slot = ring_shape(config).slot_bytes;
  if (const std::size_t wanted = config.bytes(Setting::slice_bytes); wanted != 0)
    return std::clamp<std::size_t>(wanted, sizeof(double), slot);
  if (call.uneven) return slot;
  const std::size_t chunk = call.count * element_bytes(call.type) / static_cast<std::size_t>(chunks);
  const auto window = static_cast<std::size_t>(config.number(Setting::slices_in_flight));
  const std::size_t share = (chunk / window + kCacheLine - 1) / kCacheLine * kCacheLine;
  return std::min(std::max({share, kSliceBytesMin, slice_bytes_min_}), slot);
}

// The program for memory that is one or two, and its code if the layout is the plan's.
Status CommunicatorState::complete(Plan& plan, const Call& call, bool in_place) {
  const std::size_t which = in_place ? 1 : 0;
  SLUICE_TRY_ASSIGN(plan.programs[which], program({call.collective, call.root, plan.order, in_place, plan.algorithm}));
  if (call.uneven) return {};
  const Program& program = plan.programs[which]->program;
  auto code = std::make_shared<BoundCode>();
  code->bind(program, Layout::even(program.shape, call.count, element_bytes(call.type)), plan.settings);
  plan.codes[which] = std::move(code);
  return {};
}

Result<Plan*> CommunicatorState::plan_of(const Call& call, const CallOptions& options) {
  const PlanKey key{
      call.kind,    call.type, call.reduction.op, call.root, call.uneven ? 0 : call.count, factor_bits(call.reduction),
      options.order};
  if (Plan* plan = plans_.find(key, options.algorithm); plan != nullptr) return plan;
  return make_plan(call, options, key);
}

Result<Plan*> CommunicatorState::make_plan(const Call& call, const CallOptions& options, const PlanKey& key) {
  auto plan = std::make_unique<Plan>();
  plan->key = key;
  plan->wish = options.algorithm;
  SLUICE_TRY_ASSIGN(plan->extent, check_call(call, rank(), ranks()));
  const Order fallback = runtime_->config().text(Setting::order) == "canonical" ? Order::canonical : Order::fast;
  plan->order = sums(call) ? options.order.value_or(fallback) : Order::fast;
  SLUICE_TRY_ASSIGN(plan->algorithm, choose(call, plan->order, options.algorithm));
  SLUICE_TRY_ASSIGN(const bool in_place, check_in_place(call, plan->extent, rank(), ranks()));
  SLUICE_TRY_ASSIGN(BoundProgram * bound,
                    program({call.collective, call.root, plan->order, in_place, plan->algorithm}));
  plan->programs[in_place ? 1 : 0] = bound;

  const ScheduleShape& shape = bound->program.shape;
  const std::size_t bytes = slice_bytes(call, shape.chunks);
  Fingerprint& print = plan->print;
  print.communicator = identity_.id;
  print.kind = call.kind;
  print.type = call.type;
  print.root = call.root;
  print.algorithm = hash_word(plan->algorithm->name);
  print.slice_bytes = static_cast<std::uint32_t>(bytes);
  print.count = call.uneven ? 0 : call.count;
  if (sums(call)) {
    print.op = call.reduction.op;
    print.order = plan->order;
    print.factor = factor_bits(call.reduction);
  }
  plan->print_hash = hash_but_number(print);

  CodeSettings& settings = plan->settings;
  settings.rule.type = call.type;
  settings.rule.reduction = call.reduction;
  settings.rule.ranks = ranks();
  settings.rule.canonical_nan = plan->order == Order::canonical;
  settings.wide_scratch = plan->order == Order::canonical;
  const std::size_t value =
      settings.wide_scratch && shape.scratch_chunks > 0 ? accumulator_bytes(call.type) : element_bytes(call.type);
  settings.slice_elements = std::max<std::size_t>(1, bytes / value);
  settings.window = static_cast<int>(runtime_->config().number(Setting::slices_in_flight));
  return plans_.put(std::move(plan));
}

}  // namespace sluice::detail
