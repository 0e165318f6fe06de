#include "comm/executor/runtime_state.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/fork_guard.h"
#include "base/log.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/loop_group.h"
#include "comm/executor/shrink.h"
#include "comm/tune/tuned_link.h"

namespace sluice::detail {
namespace {

constexpr std::size_t kPlainAlignment = 4096;
constexpr Nanoseconds kDrainMax = std::chrono::minutes(1);
constexpr Nanoseconds kLateWrites = std::chrono::seconds(5);  // more than a living peer needs to hear of an error
constexpr Nanoseconds kLingerMax = std::chrono::seconds(2);
constexpr Nanoseconds kMetricsEvery = std::chrono::seconds(10);
constexpr std::size_t kAbortsKept = 256;  // of communicators that may be still being made here

}  // namespace

RuntimeState::RuntimeState(Parts parts)
    : parts_(std::move(parts)), fork_generation_(fork_generation()), shrinks_(std::make_unique<ShrinkTable>()) {
  for (const auto& transport : parts_.transports) control().deliver_links_to(transport->link_class(), transport.get());
  engine_ = std::make_unique<Engine>(clock(), transport_list(), parts_.engine);
  if (parts_.loop != nullptr) {
    parts_.loop->add(engine_.get());
    engine_->drive_with([group = parts_.loop.get()](Operation& operation) { group->drive(operation); });
  }
  engine_->keep_house([this] {
    drain(false);
    if (const Nanoseconds now = clock().now(); now - metrics_written_ > kMetricsEvery) write_metrics(now);
  });
  control().on_notice([this](const Notice& notice) { on_notice(notice); });
}

RuntimeState::~RuntimeState() {
  if (parts_.loop != nullptr) parts_.loop->remove(engine_.get());
  linger();
  engine().with_token([this] { write_metrics(clock().now()); });
  control().on_notice(nullptr);  // before the engine, which the handler wakes
  engine_.reset();
  control().leave();
  parts_.transports.clear();
}

std::vector<Transport*> RuntimeState::transport_list() const {
  std::vector<Transport*> list = parts_.borrowed_transports;
  for (const auto& transport : parts_.transports) list.push_back(transport.get());
  return list;
}

Result<Transport*> RuntimeState::transport_to(Rank world_peer) const {
  if (!parts_.borrowed_transports.empty()) return parts_.borrowed_transports.front();
  const bool same_host = control().peer(world_peer).host_id == control().peer(world_rank()).host_id;
  for (const auto& transport : parts_.transports)
    if (transport->link_class() != LinkClass::shared_memory || same_host) return transport.get();
  return Error{Code::unsupported, "no transport reaches rank " + std::to_string(world_peer) + " on host '" +
                                      control().peer(world_peer).host_name + "' from rank " +
                                      std::to_string(world_rank()) + " (SLUICE_TRANSPORT is " +
                                      config().text(Setting::transport) + ")"};
}

LinkModel RuntimeState::link_model(const std::vector<Rank>& members) const {
  LinkModel weakest;
  weakest.latency_seconds = 0;
  weakest.bytes_per_second = std::numeric_limits<double>::infinity();
  for (const Rank member : members) {
    if (member == members.front()) continue;
    // Judged between hosts, not from this rank: every rank gets the same answer.
    const bool one_host = control().peer(member).host_id == control().peer(members.front()).host_id;
    for (Transport* transport : transport_list()) {
      if (transport->link_class() == LinkClass::shared_memory && !one_host) continue;
      const Capabilities link = transport->capabilities(member);
      weakest.latency_seconds = std::max(weakest.latency_seconds, link.latency_seconds);
      weakest.bytes_per_second = std::min(weakest.bytes_per_second, link.bytes_per_second);
      break;
    }
  }
  if (weakest.latency_seconds == 0) weakest = LinkModel{};  // nobody else is in it, or a loop without delays
  const bool shared_memory =
      !parts_.transports.empty() && parts_.transports.front()->link_class() == LinkClass::shared_memory;
  return tuned_link(weakest, parts_.tuning.get(), control(), members, shared_memory);
}

bool RuntimeState::left(Rank world_peer) const {
  const std::lock_guard lock(mutex_);
  return left_.contains(world_peer);
}

std::set<Rank> RuntimeState::gone_or_left() const {
  const std::lock_guard lock(mutex_);
  std::set<Rank> all;
  for (const auto& [rank, how] : gone_) all.insert(rank);
  for (const auto& [rank, how] : left_) all.insert(rank);
  return all;
}

Communicator RuntimeState::make_communicator(Identity identity) {
  return Communicator(make_state(std::move(identity)));
}

std::shared_ptr<CommunicatorState> RuntimeState::make_state(Identity identity) {
  const std::uint64_t id = identity.id;
  identity.lane = complete(identity.lane, parts_.lanes);
  auto state = std::make_shared<CommunicatorState>(shared_from_this(), std::move(identity));
  directory_.add(id, *state);
  std::map<Rank, std::string> gone;
  std::deque<Notice> aborts;
  {
    const std::lock_guard lock(mutex_);
    gone = gone_;
    aborts = aborts_;
  }
  for (const auto& [rank, how] : gone) state->on_peer_lost(rank, how);
  for (const Notice& notice : aborts)
    if (notice.communicator == id) state->on_abort(notice);
  return state;
}

void RuntimeState::forget(std::uint64_t communicator, std::vector<SentOn> sent_on) {
  engine().with_token([&] {
    draining_.push_back({communicator, std::move(sent_on), clock().now()});
    drain(false);
  });
}

// Read, or nobody is left to read it.
bool RuntimeState::is_read(const SentOn& sent) const {
  if (sent.flow->released() == sent.flow->committed() || left(sent.world_peer)) return true;
  const auto transport = transport_to(sent.world_peer);
  return !transport.ok() || !(*transport)->peer_status(sent.world_peer).ok();
}

// Under the owner token. `all`: whether read or not.
void RuntimeState::drain(bool all) {
  const Nanoseconds now = clock().now();
  const auto over = [&](Draining& one) {
    const bool read =
        std::all_of(one.flows.begin(), one.flows.end(), [this](const SentOn& sent) { return is_read(sent); });
    if (!all && !read && now - one.since < kDrainMax) return false;
    for (Transport* transport : transport_list()) transport->close_flows(one.communicator);
    return true;
  };
  std::erase_if(draining_, over);
  free_late_windows(now);
}

bool RuntimeState::may_be_written(Nanoseconds now) const {
  const std::int64_t broken = broken_at_.load(std::memory_order_relaxed);
  return broken != 0 && now.count() - broken < kLateWrites.count();
}

void RuntimeState::free_late_windows(Nanoseconds now) {
  if (late_windows_.empty() || may_be_written(now)) return;
  for (void* window : late_windows_) transport_list().front()->free_window(window);
  late_windows_.clear();
}

// Gives what was sent last some time to leave this process. A peer that does not read keeps nobody for long.
void RuntimeState::linger() {
  const Nanoseconds until = clock().now() + kLingerMax;
  bool empty = false;
  while (!empty && clock().now() < until && parts_.loop == nullptr) {
    engine().with_token([&] {
      engine().pass();
      drain(false);
      empty = draining_.empty();
    });
    if (!empty) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  engine().with_token([&] { drain(true); });
}

void RuntimeState::on_notice(const Notice& notice) {
  switch (notice.kind) {
    case NoticeKind::peer_lost:
    case NoticeKind::peer_left: return on_peer_gone(notice);
    case NoticeKind::shrink: return shrinks_->on_notice(notice);
    case NoticeKind::abort: return on_abort(notice);
    case NoticeKind::arrival: break;
  }
  directory_.visit(notice.communicator, [&](CommunicatorState& communicator) {
    communicator.on_arrival(notice.world_rank, notice.text, decode_fingerprints(notice.payload));
  });
}

// Another member may give a communicator up while it is still being made here.
void RuntimeState::on_abort(const Notice& notice) {
  {
    const std::lock_guard lock(mutex_);
    aborts_.push_back(notice);
    if (aborts_.size() > kAbortsKept) aborts_.pop_front();
  }
  directory_.visit(notice.communicator, [&](CommunicatorState& communicator) { communicator.on_abort(notice); });
}

void RuntimeState::on_peer_gone(const Notice& notice) {
  const bool lost = notice.kind == NoticeKind::peer_lost;
  {
    const std::lock_guard lock(mutex_);
    (lost ? gone_ : left_).emplace(notice.world_rank, notice.text);
  }
  if (lost) {
    for (Transport* transport : transport_list())
      transport->fail_peer(notice.world_rank, {Code::peer_lost, notice.text});
    directory_.visit_all(
        [&](CommunicatorState& communicator) { communicator.on_peer_lost(notice.world_rank, notice.text); });
  }
  shrinks_->on_change();
  engine().wake();
}

Result<Lane> RuntimeState::complete_lane(const Lane& asked) const {
  const std::string here = "rank " + std::to_string(world_rank()) + ": ";
  if (const Status wrong = check(asked); !wrong.ok()) return Error{wrong.code(), here + wrong.text()};
  Lane lane = complete(asked, parts_.lanes);
  Status wrong = check(lane);
  if (wrong.ok()) wrong = check_cores(lane, engine_->allowed());
  if (wrong.ok()) return lane;
  return Error{wrong.code(), here + wrong.text() + " (some of it may be from the setting lanes)"};
}

LaneState& RuntimeState::lane_state(const Lane& lane) {
  engine().pin(*lane.cores);
  const std::lock_guard lock(mutex_);
  std::unique_ptr<LaneState>& state = lanes_[to_text(lane)];
  if (state == nullptr) state = std::make_unique<LaneState>(lane, static_cast<std::uint32_t>(lanes_.size()));
  return *state;
}

// Lanes on which nothing was done yet are not worth a line.
std::vector<LaneCounters> RuntimeState::lane_counters() const {
  const std::lock_guard lock(mutex_);
  std::vector<LaneCounters> all;
  for (const auto& [text, one] : lanes_)
    if (LaneCounters counters = one->count.read(one->lane, clock().seconds_per_tick()); counters.operations != 0)
      all.push_back(std::move(counters));
  return all;
}

void* RuntimeState::allocate_window(std::size_t bytes, bool& shared) {
  void* memory = nullptr;
  engine().with_token([&] {
    free_late_windows(clock().now());
    for (Transport* transport : transport_list())
      if (memory == nullptr) memory = transport->allocate_window(bytes);
  });
  shared = memory != nullptr;
  if (shared) return memory;
  const std::size_t rounded =
      (std::max<std::size_t>(bytes, 1) + kPlainAlignment - 1) / kPlainAlignment * kPlainAlignment;
  return std::aligned_alloc(kPlainAlignment, rounded);
}

void RuntimeState::free_window(void* memory, bool shared) {
  if (!shared) return std::free(memory);
  engine().with_token([&] {
    if (may_be_written(clock().now())) return late_windows_.push_back(memory);
    transport_list().front()->free_window(memory);
  });
}

Status RuntimeState::check_not_forked() const {
  if (fork_generation() == fork_generation_) return {};
  return {Code::invalid_argument,
          "rank " + std::to_string(parts_.control->rank()) +
              "'s Runtime was made before a fork and can't be used in the child; fork first, then make one"};
}

}  // namespace sluice::detail
