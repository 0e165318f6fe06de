#include "transport/tcp/tcp_transport.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr std::uint32_t kCreditsAfterIdle = 64;  // calls with nothing to do before small counts are returned
constexpr Nanoseconds kBoundsEvery = std::chrono::milliseconds(20);
constexpr std::uint8_t kEveryLane = 255;  // in the inbox: the peer failed, not one link
constexpr Nanoseconds kHoldingLook = std::chrono::microseconds(100);
constexpr Nanoseconds kInUse = std::chrono::seconds(5);  // a lane that sent so lately

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::make(Rank rank, int ranks, const Config& config, Dialer& dialer) {
  SLUICE_TRY_ASSIGN(Poller poller, Poller::make());
  return std::unique_ptr<TcpTransport>(new TcpTransport(rank, ranks, config, dialer, std::move(poller)));
}

TcpTransport::TcpTransport(Rank rank, int ranks, const Config& config, Dialer& dialer, Poller poller)
    : rank_(rank),
      dialer_(dialer),
      peers_(ranks),
      poller_(std::move(poller)),
      sleeper_({&door_, poller_.event_fd()}),
      links_(static_cast<std::size_t>(ranks) * kLanes),
      budget_(config.bytes(Setting::arena_bytes)),
      delay_(config.duration(Setting::lane_delay)) {}

Capabilities TcpTransport::capabilities(Rank) const { return {LinkClass::tcp, false, 15e-6, 2e9, kSlotBytesMax}; }

// ---- flows

Status TcpTransport::check_open(Rank peer, const FlowId& flow, RingShape shape) const {
  SLUICE_TRY(peers_.status(peer));
  SLUICE_TRY(check_shape(shape));
  const bool closed = closed_.contains(flow.communicator);
  if (flow.lane < kLanes && !closed && ring_bytes(shape) <= budget_) return {};
  const std::string where =
      "rank " + std::to_string(rank_) + ": " + describe(flow) + " with rank " + std::to_string(peer);
  if (flow.lane >= kLanes)
    return {Code::invalid_argument, where + ": lanes are numbered below " + std::to_string(kLanes)};
  if (closed) return {Code::invalid_argument, where + " was closed here, its number can't be used again"};
  return {Code::out_of_resource, where + ": a ring of " + format_bytes(ring_bytes(shape)) +
                                     " is more than is left of the budget (" + format_bytes(budget_) +
                                     "); raise SLUICE_ARENA_BYTES, or use fewer or smaller slots"};
}

TcpLink& TcpTransport::link_for(LinkId id) {
  std::unique_ptr<TcpLink>& link = links_[index_of(id)];
  if (link == nullptr) link = std::make_unique<TcpLink>(TcpEnds{rank_, id, peers_.ranks()}, closed_);
  return *link;
}

TcpLink& TcpTransport::link_to(LinkId id) {
  TcpLink& link = link_for(id);
  if (!std::exchange(link.asked, true) && id.peer != rank_) dialer_.want_link(id, LinkClass::tcp);
  return link;
}

Result<OutFlow*> TcpTransport::open_out(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  TcpLink& link = link_to({peer, flow.lane});
  Result<OutFlow*> opened = link.open_out(flow, shape, lane_of(flow.communicator), budget_);
  if (!opened.ok() && opened.error().code == Code::refused) lose(link, opened.status());
  return opened;
}

Result<InFlow*> TcpTransport::open_in(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  return link_to({peer, flow.lane}).open_in(flow, shape, budget_);
}

void TcpTransport::use_lane(std::uint64_t communicator, const LaneRules& rules) {
  std::unique_ptr<TcpLane>& lane = lanes_[rules.number];
  if (lane == nullptr) lane = std::make_unique<TcpLane>(rules);
  lane_of_[communicator] = lane.get();
}

// Without a word about it, its own.
TcpLane& TcpTransport::lane_of(std::uint64_t communicator) {
  if (!lane_of_.contains(communicator)) use_lane(communicator, LaneRules{});
  return *lane_of_.at(communicator);
}

void TcpTransport::close_flows(std::uint64_t communicator) {
  closed_.insert(communicator);
  lane_of_.erase(communicator);
  for (const auto& link : links_)
    if (link != nullptr) link->close_flows(communicator, budget_);
}

// ---- progress

std::size_t TcpTransport::progress() {
  std::size_t moved = inbox_.any() ? take_inbox() : 0;
  if (live_.empty() && !sleeper_.prepared()) return moved;
  std::array<epoll_event, 64> events;
  moved += take_events(poller_.wait(events, Nanoseconds(0)));

  for (TcpLink* link : live_)
    if (link->readable()) moved += moved_or_lost(*link, link->receive());
  const bool all_credits = moved == 0 && (sleeper_.prepared() || ++idle_calls_ >= kCreditsAfterIdle);
  moved += send_all(all_credits);
  std::erase_if(live_, [](const TcpLink* link) { return !link->live(); });
  if (moved != 0 || all_credits) idle_calls_ = 0;
  return moved;
}

std::size_t TcpTransport::send_all(bool all_credits) {
  std::size_t moved = 0;
  TcpTurn turn;
  turn.all_credits = all_credits;
  holding_ = false;
  const bool here = lanes_compete();
  if (here || ever_claimed_) turn.now = RealClock::instance().now();
  const bool compete = here || (ever_claimed_ && wanted_elsewhere(*turn.now));
  if (!compete) {
    turn.now.reset();
    if (bounded_) let_go();
  } else if (*turn.now - bounds_set_ > kBoundsEvery) {
    set_bounds(*turn.now);
  }
  for (TcpLink* link : live_) {
    if (!link->live()) continue;
    turn.held = compete && must_wait(*link);
    holding_ = holding_ || (turn.held && link->has_something_to_send());
    moved += moved_or_lost(*link, link->send(turn));
    if (compete && link->id().lane < in_use_ && link->last_sent() == *turn.now) set_bounds(*turn.now);
  }
  return moved;
}

void TcpTransport::claim_network(const NetworkClaim& claim) {
  const Nanoseconds now = RealClock::instance().now();
  if (claim_.lane) claimed_at_[*claim_.lane] = now;
  if (claim.lane) claimed_at_[*claim.lane] = now;
  if (claim.lane && *claim.lane < in_use_) bounds_set_ = Nanoseconds(0);
  ever_claimed_ = ever_claimed_ || claim.lane;
  claim_ = claim;
}

// The most urgent lane that other ranks of this host use or used lately.
std::optional<std::uint8_t> TcpTransport::wanted_elsewhere(Nanoseconds now) const {
  for (std::uint8_t lane = 0; lane < kLanes; ++lane)
    if (claim_.lane == lane || (claimed_at_[lane] != Nanoseconds(0) && now - claimed_at_[lane] < kInUse)) return lane;
  return std::nullopt;
}

bool TcpTransport::unsent() const {
  return std::any_of(live_.begin(), live_.end(), [](const TcpLink* link) { return link->has_something_to_send(); });
}

bool TcpTransport::lanes_compete() const {
  if (live_.empty()) return false;
  return live_.front()->id().lane != live_.back()->id().lane ||
         std::any_of(live_.begin(), live_.end(), [](const TcpLink* link) { return link->lanes() > 1; });
}

void TcpTransport::let_go() {
  for (TcpLink* link : live_) link->unbound();
  bounded_ = false;
  in_use_ = kLanes;
}

// While a lane is in use, what less urgent ones have handed to the network is kept short; so is it where several lanes share a
// link, for what was handed over is not shared by weight any more.
void TcpTransport::set_bounds(Nanoseconds now) {
  bounds_set_ = now;
  bounded_ = true;
  in_use_ = wanted_elsewhere(now).value_or(kLanes);
  for (TcpLink* link : live_) {
    if (!link->live()) continue;
    if (link->id().lane <= in_use_ && link->lanes() < 2) {
      link->unbound();
    } else if (const std::size_t bytes = link->bound(delay_, now); bytes != 0) {
      log(LogLevel::debug, rank_,
          "the link to rank " + std::to_string(link->peer()) + " of lane " + std::to_string(link->id().lane) +
              " keeps at most " + format_bytes(bytes) + " in the kernel");
    }
    if (now - link->last_sent() < kInUse) in_use_ = std::min(in_use_, link->id().lane);
  }
}

// For messages of more urgent lanes to the same peer, which the network does not take as fast as they come, or for those of another rank.
bool TcpTransport::must_wait(const TcpLink& link) {
  if (claim_.held_below && link.id().lane > *claim_.held_below) return true;
  for (std::uint8_t lane = 0; lane < link.id().lane; ++lane)
    if (const auto& other = links_[index_of({link.peer(), lane})]; other != nullptr && other->backlog()) return true;
  return false;
}

Nanoseconds TcpTransport::patience() const {
  if (std::any_of(live_.begin(), live_.end(), [](const TcpLink* link) { return link->readable(); }))
    return Nanoseconds(0);
  return holding_ ? kHoldingLook : std::chrono::hours(1);
}

std::size_t TcpTransport::moved_or_lost(TcpLink& link, const Result<std::size_t>& moved) {
  if (moved.ok()) return *moved;
  lose(link, moved.status());
  return 1;
}

std::size_t TcpTransport::take_inbox() {
  std::vector<LinkInbox::Item> items = inbox_.take();
  for (LinkInbox::Item& item : items) {
    const Rank peer = item.id.peer;
    if (!peers_.holds(peer) || peer == rank_) continue;  // closes the stream
    if (item.id.lane == kEveryLane) close_all(peer);
    if (item.id.lane >= kLanes) continue;
    TcpLink& link = link_for(item.id);
    if (!item.stream)
      link.close();
    else if (link.live())
      log(LogLevel::warn, rank_,
          "a second stream to rank " + std::to_string(peer) + " lane " + std::to_string(item.id.lane) +
              " (tcp) was offered and closed");
    else if (const Status known = peers_.status(peer); known.ok() || known.code() == Code::peer_lost)
      start(link, std::move(item.stream));  // who left may have sent something
  }
  return items.size();
}

void TcpTransport::start(TcpLink& link, UniqueFd stream) {
  link.asked = true;
  link.start(std::move(stream));
  const auto later = [](std::uint8_t lane, const TcpLink* other) { return lane < other->id().lane; };
  live_.insert(std::upper_bound(live_.begin(), live_.end(), link.id().lane, later), &link);
  const Status added = poller_.add(link.fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, index_of(link.id()));
  if (!added.ok()) lose(link, added);
}

std::size_t TcpTransport::take_events(std::span<const epoll_event> events) {
  std::size_t woken = 0;
  for (const epoll_event& event : events) {
    if (event.data.u64 == Poller::kWakeTag)
      ++woken;  // used up by being told: the waiter must look before it sleeps
    else
      links_[event.data.u64]->take_event(event.events);
  }
  return woken;
}

void TcpTransport::close_all(Rank peer) {
  for (std::uint8_t lane = 0; lane < kLanes; ++lane)
    if (const auto& link = links_[index_of({peer, lane})]; link != nullptr) link->close();
}

// The links of other lanes are read to their own ends: who left had sent everything before.
void TcpTransport::lose(TcpLink& link, const Status& why) {
  why.code() == Code::peer_lost ? link.close() : close_all(link.peer());
  const std::string text = "peer rank " + std::to_string(link.peer()) + " (tcp): " + why.text();
  if (peers_.mark(link.peer(), {why.code(), "rank " + std::to_string(rank_) + ": " + text}))
    log(why.code() == Code::peer_lost ? LogLevel::info : LogLevel::error, rank_, text);
}

// ---- waiting

void TcpTransport::wait(Nanoseconds at_most) {
  if (!sleeper_.prepared()) sleeper_.prepare();
  std::array<epoll_event, 64> events;
  take_events(poller_.wait(events, std::min(at_most, patience())));
  sleeper_.cancel();
}

void TcpTransport::fail_peer(Rank peer, Status why) {
  if (!peers_.holds(peer)) return;
  if (peers_.mark(peer, std::move(why))) inbox_.put({peer, kEveryLane}, {});
  wake();
}

void TcpTransport::fail_link(LinkId id, Status why) {
  if (!peers_.holds(id.peer)) return;
  peers_.mark(id.peer, std::move(why));
  inbox_.put(id, {});
  wake();
}

void TcpTransport::adopt(LinkId id, UniqueFd stream) {
  inbox_.put(id, std::move(stream));
  wake();
}

}  // namespace sluice
