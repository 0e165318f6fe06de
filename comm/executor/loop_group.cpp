#include "comm/executor/loop_group.h"

#include <algorithm>

#include "comm/executor/runtime_state.h"

namespace sluice::detail {
namespace {

constexpr Nanoseconds kStepMax = std::chrono::milliseconds(50);  // of virtual time, when nothing is under way

}  // namespace

LoopGroup::LoopGroup(int ranks, const LoopOptions& options)
    : world_(ranks, options), controls_(ranks), rng_(options.seed ^ 0x5eed) {}

void LoopGroup::add(Engine* engine) { engines_.push_back(engine); }

void LoopGroup::remove(Engine* engine) { std::erase(engines_, engine); }

void LoopGroup::drive(Operation& operation) {
  while (!operation.finished()) step();
}

bool LoopGroup::step() {
  std::size_t moved = controls_.deliver();
  const std::size_t first = engines_.empty() ? 0 : rng_.below(engines_.size());
  for (std::size_t i = 0; i < engines_.size(); ++i) moved += engines_[(first + i) % engines_.size()]->pass();
  if (moved > 0) return true;
  const Nanoseconds now = world_.clock().now();
  Nanoseconds until = now + kStepMax;
  for (const Engine* engine : engines_) until = std::min(until, engine->held_until().value_or(until));
  const bool pending = world_.advance(std::max(until - now, Nanoseconds(1)));
  for (Engine* engine : engines_) engine->watch();
  return pending || until < now + kStepMax;
}

void LoopGroup::kill(Rank rank, const std::string& how) {
  world_.kill(rank);
  controls_.lose(rank, how);
}

Result<LoopRuntimes> make_loop_runtimes(int ranks, const LoopOptions& loop, const RuntimeOptions& options) {
  if (ranks < 1 || ranks > kRanksMax)
    return Error{Code::invalid_argument,
                 "a loop world has 1.." + std::to_string(kRanksMax) + " ranks, not " + std::to_string(ranks)};
  SLUICE_TRY_ASSIGN(const std::vector<Lane> lanes, configured_lanes(options.config));
  LoopRuntimes made;
  made.group = std::make_shared<LoopGroup>(ranks, loop);
  for (Rank rank = 0; rank < ranks; ++rank) {
    RuntimeState::Parts parts;
    parts.config = options.config;
    parts.lanes = lanes;
    parts.control = made.group->controls().take(rank);
    parts.borrowed_transports = {&made.group->world().transport(rank)};
    parts.clock = &made.group->world().clock();
    parts.loop = made.group;
    parts.engine.thread = false;
    made.runtimes.push_back(std::make_unique<Runtime>(std::make_shared<RuntimeState>(std::move(parts))));
  }
  return made;
}

}  // namespace sluice::detail
