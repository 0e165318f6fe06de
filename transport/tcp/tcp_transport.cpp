#include "transport/tcp/tcp_transport.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/log.h"

namespace sluice {
namespace {

constexpr std::uint32_t kCreditsAfterIdle = 64;  // calls with nothing to do before small counts are returned

}  // namespace

Result<std::unique_ptr<TcpTransport>> TcpTransport::make(Rank rank, int ranks, const Config& config, Dialer& dialer) {
  SLUICE_TRY_ASSIGN(Poller poller, Poller::make());
  return std::unique_ptr<TcpTransport>(
      new TcpTransport(rank, ranks, config.bytes(Setting::arena_bytes), dialer, std::move(poller)));
}

TcpTransport::TcpTransport(Rank rank, int ranks, std::size_t budget, Dialer& dialer, Poller poller)
    : rank_(rank),
      dialer_(dialer),
      peers_(ranks),
      poller_(std::move(poller)),
      sleeper_({&door_, poller_.event_fd()}),
      links_(static_cast<std::size_t>(ranks)),
      budget_(budget) {}

Capabilities TcpTransport::capabilities(Rank) const { return {LinkClass::tcp, false, 15e-6, 2e9, kSlotBytesMax}; }

// ---- flows

Status TcpTransport::check_open(Rank peer, const FlowId& flow, RingShape shape) const {
  SLUICE_TRY(peers_.status(peer));
  SLUICE_TRY(check_shape(shape));
  const bool closed = closed_.contains(flow.communicator);
  if (!closed && ring_bytes(shape) <= budget_) return {};
  const std::string where =
      "rank " + std::to_string(rank_) + ": " + describe(flow) + " with rank " + std::to_string(peer);
  if (closed) return {Code::invalid_argument, where + " was closed here, its number can't be used again"};
  return {Code::out_of_resource, where + ": a ring of " + format_bytes(ring_bytes(shape)) +
                                     " is more than is left of the budget (" + format_bytes(budget_) +
                                     "); raise SLUICE_ARENA_BYTES, or use fewer or smaller slots"};
}

TcpLink& TcpTransport::link_for(Rank peer) {
  std::unique_ptr<TcpLink>& link = links_[static_cast<std::size_t>(peer)];
  if (link == nullptr) link = std::make_unique<TcpLink>(TcpEnds{rank_, peer, peers_.ranks()}, closed_);
  return *link;
}

TcpLink& TcpTransport::link_to(Rank peer) {
  TcpLink& link = link_for(peer);
  if (!std::exchange(link.asked, true) && peer != rank_) dialer_.want_link(peer, LinkClass::tcp);
  return link;
}

Result<OutFlow*> TcpTransport::open_out(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  TcpLink& link = link_to(peer);
  Result<OutFlow*> opened = link.open_out(flow, shape, budget_);
  if (!opened.ok() && opened.error().code == Code::refused) lose(link, opened.status());
  return opened;
}

Result<InFlow*> TcpTransport::open_in(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  return link_to(peer).open_in(flow, shape, budget_);
}

void TcpTransport::close_flows(std::uint64_t communicator) {
  closed_.insert(communicator);
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
  for (TcpLink* link : live_)
    if (link->live()) moved += moved_or_lost(*link, link->send(all_credits));
  std::erase_if(live_, [](const TcpLink* link) { return !link->live(); });
  if (moved != 0 || all_credits) idle_calls_ = 0;
  return moved;
}

std::size_t TcpTransport::moved_or_lost(TcpLink& link, const Result<std::size_t>& moved) {
  if (moved.ok()) return *moved;
  lose(link, moved.status());
  return 1;
}

std::size_t TcpTransport::take_inbox() {
  std::vector<LinkInbox::Item> items = inbox_.take();
  for (LinkInbox::Item& item : items) {
    if (!peers_.holds(item.peer) || item.peer == rank_) continue;  // closes the stream
    TcpLink& link = link_for(item.peer);
    if (!item.stream)
      lose(link, peers_.status(item.peer));
    else if (link.live())
      log(LogLevel::warn, rank_,
          "a second stream to rank " + std::to_string(item.peer) + " (tcp) was offered and closed");
    else if (!peers_.broken(item.peer))
      start(link, std::move(item.stream));
  }
  return items.size();
}

void TcpTransport::start(TcpLink& link, UniqueFd stream) {
  link.asked = true;
  link.start(std::move(stream));
  live_.push_back(&link);
  const Status added =
      poller_.add(link.fd(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, static_cast<std::uint64_t>(link.peer()));
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

void TcpTransport::lose(TcpLink& link, const Status& why) {
  link.close();
  const std::string text = "peer rank " + std::to_string(link.peer()) + " (tcp): " + why.text();
  if (peers_.mark(link.peer(), {why.code(), "rank " + std::to_string(rank_) + ": " + text}))
    log(why.code() == Code::peer_lost ? LogLevel::info : LogLevel::error, rank_, text);
}

// ---- waiting

void TcpTransport::wait(Nanoseconds at_most) {
  if (!sleeper_.prepared()) sleeper_.prepare();
  const bool more = std::any_of(live_.begin(), live_.end(), [](const TcpLink* link) { return link->readable(); });
  std::array<epoll_event, 64> events;
  take_events(poller_.wait(events, more ? Nanoseconds(0) : at_most));
  sleeper_.cancel();
}

void TcpTransport::fail_peer(Rank peer, Status why) {
  if (!peers_.holds(peer)) return;
  if (peers_.mark(peer, std::move(why))) inbox_.put(peer, {});
  wake();
}

void TcpTransport::adopt(Rank peer, UniqueFd stream) {
  inbox_.put(peer, std::move(stream));
  wake();
}

}  // namespace sluice
