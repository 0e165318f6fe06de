#include "transport/shm/shm_transport.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "transport/shm/shm_link.h"

namespace sluice {
namespace {

constexpr std::uint32_t kPollEvery = 256;          // calls of progress() between two looks at the sockets unasked
constexpr std::size_t kFlowsPerLinkMax = 1 << 16;  // that a peer may announce and we not have opened
constexpr std::size_t kPageAlignedFrom = 1 << 16;  // windows of this size start on a page
constexpr std::size_t kGiveBackFrom = 1 << 20;     // freed windows of this size return their pages
constexpr std::size_t kPage = 4096;
constexpr Nanoseconds kResendEvery = std::chrono::milliseconds(1);  // the longest sleep with records not yet sent

}  // namespace

Result<std::unique_ptr<ShmTransport>> ShmTransport::make(Rank rank, int ranks, const Config& config, Dialer& dialer) {
  SLUICE_TRY_ASSIGN(Poller poller, Poller::make());
  SLUICE_TRY_ASSIGN(std::shared_ptr<Arena> arena, Arena::create(config.bytes(Setting::arena_bytes), poller.event_fd()));
  return std::unique_ptr<ShmTransport>(new ShmTransport(rank, ranks, dialer, std::move(poller), std::move(arena)));
}

ShmTransport::ShmTransport(Rank rank, int ranks, Dialer& dialer, Poller poller, std::shared_ptr<Arena> arena)
    : rank_(rank),
      dialer_(dialer),
      peers_(ranks),
      poller_(std::move(poller)),
      arena_(std::move(arena)),
      space_(arena_->bytes()),
      links_(static_cast<std::size_t>(ranks)),
      sleeper_(arena_->bell()) {
  [[maybe_unused]] const auto head = space_.allocate(kArenaHeadBytes);
  SLUICE_ASSERT(head && *head == 0, "the arena's head comes first");
}

ShmTransport::~ShmTransport() = default;

Capabilities ShmTransport::capabilities(Rank) const {
  return {LinkClass::shared_memory, true, 0.25e-6, 12e9, std::min<std::size_t>(kSlotBytesMax, arena_->bytes() / 64)};
}

// ---- flows

Status ShmTransport::check_open(Rank peer, FlowId flow, RingShape shape) const {
  SLUICE_TRY(peers_.status(peer));
  SLUICE_TRY(check_shape(shape));
  if (closed_.contains(flow.communicator))
    return {Code::invalid_argument, "rank " + std::to_string(rank_) + ": " + describe(flow) +
                                        " was closed here, its number can't be used again"};
  return {};
}

ShmTransport::Link& ShmTransport::link_to(Rank peer) {
  std::unique_ptr<Link>& link = links_[static_cast<std::size_t>(peer)];
  if (link == nullptr) {
    link = std::make_unique<Link>();
    link->peer = peer;
    if (peer == rank_) link->arena = arena_;
  }
  if (!link->asked) {
    link->asked = true;
    if (peer != rank_) dialer_.want_link({peer}, LinkClass::shared_memory);
  }
  return *link;
}

Result<OutFlow*> ShmTransport::open_out(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  Link& link = link_to(peer);
  if (const auto known = link.out.find(flow); known != link.out.end()) {
    if (known->second.shape == shape) return &known->second.flow;
    return Error{Code::invalid_argument, "rank " + std::to_string(rank_) + ": " + describe(flow) + " to rank " +
                                             std::to_string(peer) + " is open with " + describe(known->second.shape)};
  }
  SLUICE_TRY_ASSIGN(const std::size_t offset, allocate_ring(shape));
  Out& out = link.out[flow];
  out.shape = shape;
  out.offset = offset;
  const Bell bell = link.arena != nullptr && peer != rank_ ? link.arena->bell() : Bell{};
  out.flow.bind(Ring(arena_->data() + offset, shape), bell, arena_->data(), arena_->bytes());
  if (link.arena != nullptr) announce(link, flow, out);
  return &out.flow;
}

Result<InFlow*> ShmTransport::open_in(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  Link& link = link_to(peer);
  if (const auto known = link.in.find(flow); known != link.in.end()) {
    if (known->second.shape == shape) return &known->second.flow;
    return Error{Code::invalid_argument, "rank " + std::to_string(rank_) + ": " + describe(flow) + " from rank " +
                                             std::to_string(peer) + " is open with " + describe(known->second.shape)};
  }
  In& in = link.in[flow];
  in.shape = shape;
  const auto announced = link.announced.find(flow);
  if (announced == link.announced.end()) return &in.flow;
  if (announced->second.shape == shape)
    bind_in(link, in, announced->second.offset);
  else
    lose(link, {Code::refused, describe(flow) + ": the peer opened it with " + describe(announced->second.shape) +
                                   ", we with " + describe(shape)});
  return &in.flow;
}

Result<std::size_t> ShmTransport::allocate_ring(RingShape shape) {
  const std::size_t bytes = ring_bytes(shape);
  const auto offset = space_.allocate(bytes);
  if (!offset)
    return Error{Code::out_of_resource, "rank " + std::to_string(rank_) + ": the shared arena of " +
                                            format_bytes(arena_->bytes()) + " has no room for a ring of " +
                                            format_bytes(bytes) +
                                            "; raise SLUICE_ARENA_BYTES, or use fewer or smaller slots"};
  // Control lines and headers start as zeros; slots are written before they are read.
  std::memset(arena_->data() + *offset, 0, bytes - std::size_t{shape.slots} * shape.slot_bytes);
  return *offset;
}

// Tells the peer of a ring; to itself a rank tells it at once.
void ShmTransport::announce(Link& link, FlowId flow, const Out& out) {
  const Record record{.kind = RecordKind::open_flow, .flow = flow, .shape = out.shape, .offset = out.offset};
  if (link.peer != rank_) {
    link.stream.push(record);
    return send(link);
  }
  link.announced.emplace(flow, record);
  if (const auto in = link.in.find(flow); in != link.in.end() && in->second.shape == out.shape)
    bind_in(link, in->second, out.offset);
}

void ShmTransport::bind_in(Link& link, In& in, std::uint64_t offset) {
  in.flow.bind(Ring(link.arena->data() + offset, in.shape), link.peer == rank_ ? Bell{} : link.arena->bell(),
               link.arena->data(), link.arena->bytes());
}

void ShmTransport::close_flows(std::uint64_t communicator) {
  closed_.insert(communicator);
  for (const auto& link : links_)
    if (link != nullptr) close_flows_of(*link, communicator);
}

void ShmTransport::close_flows_of(Link& link, std::uint64_t communicator) {
  std::vector<std::size_t> rings;
  for (const auto& [flow, out] : link.out)
    if (flow.communicator == communicator) rings.push_back(out.offset);
  const auto of_communicator = [communicator](const auto& entry) { return entry.first.communicator == communicator; };
  const std::size_t forgotten = std::erase_if(link.out, of_communicator) + std::erase_if(link.in, of_communicator) +
                                std::erase_if(link.announced, of_communicator);
  const bool peer_closed = link.peer_closed.erase(communicator) != 0;
  if (link.lost) {
    if (link.out.empty() && link.in.empty()) link.arena.reset();
    return;  // the peer may still live and write its released counts: the rings' place is not used again
  }
  if (link.peer == rank_ || link.arena == nullptr || peer_closed)  // itself, never told, agreed
    for (const std::size_t offset : rings) space_.free(offset);
  else if (!rings.empty())
    link.draining.emplace(communicator, std::move(rings));
  if (forgotten == 0 || !link.stream) return;
  link.stream.push({.kind = RecordKind::close_communicator, .flow = {.communicator = communicator}});
  send(link);
}

// ---- progress

std::size_t ShmTransport::progress() {
  std::size_t moved = inbox_.any() ? take_inbox() : 0;
  if (streams_ == 0 && !sleeper_.prepared()) return moved;
  const std::uint32_t attention = arena_->head().attention.load(std::memory_order_relaxed);
  if (sleeper_.prepared() || poll_next_ || attention != attention_seen_ || ++calls_ % kPollEvery == 0) {
    attention_seen_ = attention;
    poll_next_ = false;
    moved += poll_links();
  }
  if (unsent_ != 0)
    for (const auto& link : links_)
      if (link != nullptr && link->unsent) send(*link);
  return moved;
}

std::size_t ShmTransport::take_inbox() {
  std::vector<LinkInbox::Item> items = inbox_.take();
  for (LinkInbox::Item& item : items) {
    if (!peers_.holds(item.id.peer) || item.id.peer == rank_) continue;  // closes the stream
    if (!item.stream) {
      if (Link* const link = links_[static_cast<std::size_t>(item.id.peer)].get(); link != nullptr)
        lose(*link, peers_.status(item.id.peer));
      continue;
    }
    if (peers_.broken(item.id.peer)) continue;
    std::unique_ptr<Link>& link = links_[static_cast<std::size_t>(item.id.peer)];
    if (link == nullptr) {
      link = std::make_unique<Link>();
      link->peer = item.id.peer;
    }
    link->asked = true;
    if (link->stream) {
      log(LogLevel::warn, rank_,
          "a second stream to rank " + std::to_string(item.id.peer) + " (shm) was offered and closed");
      continue;
    }
    start(*link, std::move(item.stream));
  }
  return items.size();
}

void ShmTransport::start(Link& link, UniqueFd stream) {
  link.stream = RecordStream(std::move(stream));
  ++streams_;
  if (Status added = poller_.add(link.stream.fd(), EPOLLIN | EPOLLRDHUP, static_cast<std::uint64_t>(link.peer));
      !added.ok())
    return lose(link, added);
  link.stream.greet({.kind = RecordKind::greeting,
                     .arena = arena_->name(),
                     .arena_bytes = arena_->bytes(),
                     .rank = rank_,
                     .ranks = peers_.ranks()},
                    {arena_->memory_fd(), arena_->event_fd()});
  send(link);
}

std::size_t ShmTransport::poll_links() {
  std::array<epoll_event, 64> events;
  std::size_t moved = 0;
  for (const epoll_event& event : poller_.wait(events, Nanoseconds(0))) {
    if (event.data.u64 == Poller::kWakeTag) {
      ++moved;  // whoever rang won't ring again for what comes next: the waiter must look before it sleeps
      continue;
    }
    Link* const link = links_[event.data.u64].get();
    if (link != nullptr && link->stream) moved += read_records(*link);
  }
  return moved;
}

std::size_t ShmTransport::read_records(Link& link) {
  std::size_t taken = 0;
  for (; link.stream; ++taken) {
    Result<std::optional<Record>> record = link.stream.next();
    if (record.ok() && !*record) return taken;
    Status status = record.ok() ? take_record(link, **record) : record.status();
    if (status.ok()) continue;
    lose(link, status);
  }
  return taken;
}

Status ShmTransport::take_record(Link& link, const Record& record) {
  switch (record.kind) {
    case RecordKind::greeting: return take_greeting(link, record);
    case RecordKind::open_flow: return take_announcement(link, record);
    case RecordKind::close_communicator: break;
  }
  if (link.peer_closed.size() >= kFlowsPerLinkMax)
    return {Code::refused, "too many communicators closed that are open here"};
  take_close(link, record.flow.communicator);
  return {};
}

Status ShmTransport::take_greeting(Link& link, const Record& greeting) {
  if (greeting.rank != link.peer || greeting.ranks != peers_.ranks())
    return {Code::refused,
            "the peer says that it is rank " + std::to_string(greeting.rank) + " of " + std::to_string(greeting.ranks)};
  auto [memory, event] = link.stream.take_descriptors();
  if (!memory || !event) return {Code::refused, "the greeting came without the descriptors of memory and bell"};
  SLUICE_TRY_ASSIGN(link.arena, Arena::join(greeting.arena, greeting.arena_bytes, std::move(memory), std::move(event)));
  neighbours_.push_back(&link);
  for (auto& [flow, out] : link.out) {
    out.flow.bind(out.flow.ring(), link.arena->bell(), arena_->data(), arena_->bytes());
    link.stream.push({.kind = RecordKind::open_flow, .flow = flow, .shape = out.shape, .offset = out.offset});
  }
  send(link);
  return {};
}

Status ShmTransport::take_announcement(Link& link, const Record& record) {
  SLUICE_TRY(check_ring_place(record, link.arena->bytes()));
  if (closed_.contains(record.flow.communicator)) {  // it may have missed that we closed it
    link.stream.push({.kind = RecordKind::close_communicator, .flow = {.communicator = record.flow.communicator}});
    send(link);
    return {};
  }
  if (link.announced.size() >= kFlowsPerLinkMax)
    return {Code::refused, "more than " + std::to_string(kFlowsPerLinkMax) + " flows announced"};
  if (!link.announced.emplace(record.flow, record).second)
    return {Code::refused, describe(record.flow) + " was announced twice"};
  const auto in = link.in.find(record.flow);
  if (in == link.in.end()) return {};
  if (in->second.shape != record.shape)
    return {Code::refused, describe(record.flow) + ": the peer opened it with " + describe(record.shape) +
                               ", we with " + describe(in->second.shape)};
  bind_in(link, in->second, record.offset);
  return {};
}

void ShmTransport::take_close(Link& link, std::uint64_t communicator) {
  if (!closed_.contains(communicator)) {
    link.peer_closed.insert(communicator);
    return;
  }
  const auto rings = link.draining.extract(communicator);
  if (rings.empty()) return;
  for (const std::size_t offset : rings.mapped()) space_.free(offset);
}

// Sends what waits, and makes a peer that spins look at its stream.
void ShmTransport::send(Link& link) {
  const Result<bool> sent = link.stream.flush();
  if (!sent.ok()) return lose(link, sent.status());
  if (link.unsent != link.stream.waiting()) {
    link.unsent = link.stream.waiting();
    unsent_ += link.unsent ? 1 : -1;
  }
  if (*sent && link.arena != nullptr) link.arena->head().attention.fetch_add(1, std::memory_order_relaxed);
}

// The link is over. Rings and mappings stay while flows use them.
void ShmTransport::lose(Link& link, const Status& why) {
  if (link.unsent) --unsent_;
  link.unsent = false;
  if (link.stream) --streams_;
  link.stream.close();
  link.lost = true;
  const std::string text = "peer rank " + std::to_string(link.peer) + " (shm): " + why.text();
  if (peers_.mark(link.peer, {why.code(), "rank " + std::to_string(rank_) + ": " + text}))
    log(why.code() == Code::peer_lost ? LogLevel::info : LogLevel::error, rank_, text);
}

// ---- waiting

void ShmTransport::cancel_wait() {
  sleeper_.cancel();
  poll_next_ = true;  // what ended a wait may be for progress() to take up
}

void ShmTransport::wait(Nanoseconds at_most) {
  if (!sleeper_.prepared()) sleeper_.prepare();
  std::array<epoll_event, 16> events;  // only the bell's is used up by being told; streams tell again
  poller_.wait(events, std::min(at_most, patience()));
  cancel_wait();
}

Nanoseconds ShmTransport::patience() const { return unsent_ != 0 ? kResendEvery : std::chrono::hours(1); }

void ShmTransport::fail_peer(Rank peer, Status why) {
  if (!peers_.holds(peer)) return;
  if (peers_.mark(peer, std::move(why))) inbox_.put({peer}, {});
  wake();
}

void ShmTransport::adopt(LinkId id, UniqueFd stream) {
  inbox_.put(id, std::move(stream));
  wake();
}

// ---- windows

void* ShmTransport::allocate_window(std::size_t bytes) {
  auto offset = bytes >= kHugePageBytes ? space_.allocate(bytes, kHugePageBytes) : std::nullopt;
  if (!offset) offset = space_.allocate(bytes, bytes >= kPageAlignedFrom ? kPage : kCacheLine);
  if (!offset) return nullptr;
  arena_->want_huge_pages(*offset, bytes);
  return arena_->data() + *offset;
}

void ShmTransport::free_window(void* memory) {
  if (memory == nullptr) return;
  const auto offset = static_cast<std::size_t>(static_cast<std::byte*>(memory) - arena_->data());
  if (const std::size_t bytes = space_.free(offset); bytes >= kGiveBackFrom) arena_->give_back(offset, bytes);
}

}  // namespace sluice
