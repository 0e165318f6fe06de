#include "transport/tcp/tcp_transport.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/log.h"
#include "transport/ring_memory.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/send_batch.h"

namespace sluice {
namespace {

constexpr std::size_t kReadBudget = 1 << 20;        // bytes read from one link before others get their turn
constexpr std::size_t kEarlyOpensMax = 1 << 16;     // flows that a peer may open before us, per link
constexpr std::uint32_t kCreditsAfterIdle = 64;     // calls with nothing to do before small counts are returned
constexpr int kUnsentInKernel = 1 << 17;            // bytes not yet on the wire that the kernel may hold of a link

}  // namespace

struct TcpTransport::Out {
  FlowId id;
  OutFlow flow;
  RingMemory ring;
  bool peer_open = false;
  std::uint64_t sent = 0;

  bool sendable() const { return peer_open && sent < flow.committed(); }
};

struct TcpTransport::In {
  FlowId id;
  InFlow flow;
  RingMemory ring;  // to itself a rank has no second one: the sender's is used
  std::uint64_t received = 0;
  std::uint64_t told = 0;  // released count that the sender was told
};

struct TcpTransport::Link {
  Rank peer = 0;
  bool asked = false;  // the Dialer, or the peer's asked for us
  UniqueFd stream;
  bool greeted = false;
  bool readable = false;  // there may be more to read: the poller tells of each change only once
  bool writable = false;
  bool ended = false;     // the poller told of the end: read up to it
  FrameDecoder decoder;
  In* receiving = nullptr;  // whose slot the payload under way fills; nullptr: it is thrown away
  SendBatch batch;
  std::vector<Frame> control;  // greeting and opens to be sent
  std::map<FlowId, std::unique_ptr<Out>> out;
  std::map<FlowId, std::unique_ptr<In>> in;
  std::vector<Out*> out_by_lane;
  std::vector<In*> ins;  // all of `in`, to be looked through at every progress()
  std::size_t turn = 0;
  std::map<FlowId, RingShape> early_opens;  // of flows that we have not opened yet
};

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

TcpTransport::~TcpTransport() = default;

Capabilities TcpTransport::capabilities(Rank) const { return {LinkClass::tcp, false, 15e-6, 2e9, kSlotBytesMax}; }

// ---- flows

Status TcpTransport::check_open(Rank peer, FlowId flow, RingShape shape) const {
  SLUICE_TRY(peers_.status(peer));
  SLUICE_TRY(check_shape(shape));
  const std::string where = "rank " + std::to_string(rank_) + ": " + describe(flow) + " with rank " + std::to_string(peer);
  if (closed_.contains(flow.communicator)) return {Code::invalid_argument, where + " was closed here, its number can't be used again"};
  if (ring_bytes(shape) > budget_)
    return {Code::out_of_resource, where + ": a ring of " + format_bytes(ring_bytes(shape)) + " is more than is left of the budget (" +
                                       format_bytes(budget_) + "); raise SLUICE_ARENA_BYTES, or use fewer or smaller slots"};
  return {};
}

TcpTransport::Link& TcpTransport::link_to(Rank peer) {
  std::unique_ptr<Link>& link = links_[static_cast<std::size_t>(peer)];
  if (link == nullptr) {
    link = std::make_unique<Link>();
    link->peer = peer;
  }
  if (!std::exchange(link->asked, true) && peer != rank_) dialer_.want_link(peer, LinkClass::tcp);
  return *link;
}

Result<OutFlow*> TcpTransport::open_out(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  Link& link = link_to(peer);
  if (const auto known = link.out.find(flow); known != link.out.end()) {
    if (known->second->flow.ring().shape() == shape) return &known->second->flow;
    return Error{Code::invalid_argument, "rank " + std::to_string(rank_) + ": " + describe(flow) + " to rank " + std::to_string(peer) +
                                             " is open with " + describe(known->second->flow.ring().shape())};
  }
  auto out = std::make_unique<Out>();
  SLUICE_TRY_ASSIGN(out->ring, RingMemory::make(shape));
  budget_ -= ring_bytes(shape);
  out->id = flow;
  out->flow.bind(out->ring.ring(), {}, nullptr, 0);
  Out* const made = out.get();
  link.out.emplace(flow, std::move(out));
  if (peer == rank_) {
    if (const auto in = link.in.find(flow); in != link.in.end()) in->second->flow.bind(made->ring.ring(), {}, nullptr, 0);
    return &made->flow;
  }
  const auto later = [](std::uint8_t lane, const Out* other) { return lane < other->id.lane; };
  link.out_by_lane.insert(std::upper_bound(link.out_by_lane.begin(), link.out_by_lane.end(), flow.lane, later), made);
  if (const auto early = link.early_opens.extract(flow); !early.empty()) {
    made->peer_open = early.mapped() == shape;
    if (!made->peer_open)
      lose(link, {Code::refused, describe(flow) + ": the peer opened it with " + describe(early.mapped()) + ", we with " + describe(shape)});
  }
  return &made->flow;
}

Result<InFlow*> TcpTransport::open_in(Rank peer, FlowId flow, RingShape shape) {
  SLUICE_TRY(check_open(peer, flow, shape));
  Link& link = link_to(peer);
  if (const auto known = link.in.find(flow); known != link.in.end()) {
    if (known->second->ring.ring().shape() == shape) return &known->second->flow;
    return Error{Code::invalid_argument, "rank " + std::to_string(rank_) + ": " + describe(flow) + " from rank " + std::to_string(peer) +
                                             " is open with " + describe(known->second->ring.ring().shape())};
  }
  auto in = std::make_unique<In>();
  SLUICE_TRY_ASSIGN(in->ring, RingMemory::make(shape));
  budget_ -= ring_bytes(shape);
  in->id = flow;
  In* const made = in.get();
  link.in.emplace(flow, std::move(in));
  if (peer == rank_) {
    if (const auto out = link.out.find(flow); out != link.out.end()) made->flow.bind(out->second->ring.ring(), {}, nullptr, 0);
    return &made->flow;
  }
  link.ins.push_back(made);
  made->flow.bind(made->ring.ring(), {}, nullptr, 0);
  if (link.stream) link.control.push_back({.kind = FrameKind::open, .flow = flow, .shape = shape});
  return &made->flow;
}

void TcpTransport::close_flows(std::uint64_t communicator) {
  closed_.insert(communicator);
  for (const auto& link : links_)
    if (link != nullptr) close_flows_of(*link, communicator);
}

void TcpTransport::close_flows_of(Link& link, std::uint64_t communicator) {
  const auto named = [communicator](const auto& entry) { return entry.first.communicator == communicator; };
  if (std::any_of(link.out.begin(), link.out.end(), named)) link.batch.own_rest();  // a frame that has begun must end
  if (link.receiving != nullptr && link.receiving->id.communicator == communicator) {
    link.receiving = nullptr;
    link.decoder.place_payload(nullptr);
  }
  std::erase_if(link.out_by_lane, [communicator](const Out* out) { return out->id.communicator == communicator; });
  std::erase_if(link.ins, [communicator](const In* in) { return in->id.communicator == communicator; });
  std::erase_if(link.early_opens, named);
  std::erase_if(link.control, [communicator](const Frame& frame) {
    return frame.kind == FrameKind::open && frame.flow.communicator == communicator;
  });
  for (const auto& [flow, in] : link.in)  // the last word on what was read: the sender may wait for it before it closes
    if (flow.communicator == communicator && in->flow.released() != in->told && link.stream)
      link.control.push_back({.kind = FrameKind::credit, .flow = flow, .number = in->flow.released()});
  const auto forget = [&](auto& flows) {
    std::erase_if(flows, [&](const auto& entry) {
      if (!named(entry)) return false;
      budget_ += ring_bytes(entry.second->ring.ring().shape());
      return true;
    });
  };
  forget(link.in);
  forget(link.out);
}

// ---- progress

std::size_t TcpTransport::progress() {
  std::size_t moved = inbox_.any() ? take_inbox() : 0;
  if (live_.empty() && !sleeper_.prepared()) return moved;
  std::array<epoll_event, 64> events;
  moved += take_events(poller_.wait(events, Nanoseconds(0)));

  for (std::size_t i = 0; i < live_.size(); ++i) {  // a link that is lost is taken out at the end of send()
    if (live_[i]->readable) moved += receive(*live_[i]);
  }
  const bool all_credits = moved == 0 && (sleeper_.prepared() || ++idle_calls_ >= kCreditsAfterIdle);
  for (std::size_t i = 0; i < live_.size(); ++i) moved += send(*live_[i], all_credits);
  std::erase_if(live_, [](const Link* link) { return !link->stream; });
  if (moved != 0) idle_calls_ = 0;
  return moved;
}

std::size_t TcpTransport::take_inbox() {
  std::vector<LinkInbox::Item> items = inbox_.take();
  for (LinkInbox::Item& item : items) {
    if (!peers_.holds(item.peer) || item.peer == rank_) continue;  // closes the stream
    if (!item.stream) {
      if (Link* const link = links_[static_cast<std::size_t>(item.peer)].get(); link != nullptr) lose(*link, peers_.status(item.peer));
      continue;
    }
    if (peers_.broken(item.peer)) continue;
    std::unique_ptr<Link>& link = links_[static_cast<std::size_t>(item.peer)];
    if (link == nullptr) {
      link = std::make_unique<Link>();
      link->peer = item.peer;
    }
    link->asked = true;
    if (link->stream)
      log(LogLevel::warn, rank_, "a second stream to rank " + std::to_string(item.peer) + " (tcp) was offered and closed");
    else
      start(*link, std::move(item.stream));
  }
  return items.size();
}

void TcpTransport::start(Link& link, UniqueFd stream) {
  link.stream = std::move(stream);
  live_.push_back(&link);
  // Without these it works too, only slower or less urgent: a stream that is no TCP socket has none of them.
  const int on = 1;
  ::setsockopt(link.stream.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(link.stream.get(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentInKernel, sizeof kUnsentInKernel);
  link.writable = true;
  link.control.push_back({.kind = FrameKind::greeting,
                          .rank = static_cast<std::uint32_t>(rank_),
                          .ranks = static_cast<std::uint32_t>(peers_.ranks())});
  for (const auto& [flow, in] : link.in)
    link.control.push_back({.kind = FrameKind::open, .flow = flow, .shape = in->ring.ring().shape()});
  const Status added =
      poller_.add(link.stream.get(), EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, static_cast<std::uint64_t>(link.peer));
  if (!added.ok()) lose(link, added);
}

std::size_t TcpTransport::take_events(std::span<const epoll_event> events) {
  std::size_t woken = 0;
  for (const epoll_event& event : events) {
    if (event.data.u64 == Poller::kWakeTag) {
      ++woken;  // used up by being told: the waiter must look before it sleeps
      continue;
    }
    Link& link = *links_[event.data.u64];
    if ((event.events & EPOLLOUT) != 0) link.writable = true;
    if ((event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link.readable = true;
    if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link.ended = true;
  }
  return woken;
}

// ---- receiving

std::size_t TcpTransport::receive(Link& link) {
  std::size_t moved = 0;
  for (std::size_t budget = kReadBudget; link.readable && link.stream && budget != 0;) {
    std::array<iovec, 2> space = link.decoder.space();
    msghdr message{};
    message.msg_iov = space.data();
    message.msg_iovlen = space[1].iov_len != 0 ? 2 : 1;
    const ssize_t got = ::recvmsg(link.stream.get(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      link.readable = false;
      break;
    }
    if (got <= 0) {
      lose(link, {Code::peer_lost, got == 0 || errno == ECONNRESET ? std::string("the peer closed the link: its process ended or it left")
                                            : std::string("the link broke: ") + std::strerror(errno)});
      return moved + 1;
    }
    const auto bytes = static_cast<std::size_t>(got);
    if (bytes < space[0].iov_len + space[1].iov_len && !link.ended) link.readable = false;  // that was all
    budget -= std::min(budget, bytes);
    link.decoder.filled(bytes);
    const Result<std::size_t> frames = take_frames(link);
    if (!frames.ok()) {
      lose(link, frames.status());
      return moved + 1;
    }
    moved += 1 + *frames;
  }
  return moved;
}

Result<std::size_t> TcpTransport::take_frames(Link& link) {
  for (std::size_t taken = 0;; ++taken) {
    SLUICE_TRY_ASSIGN(const FrameDecoder::Event event, link.decoder.next());
    if (event == FrameDecoder::Event::nothing) return taken;
    if (event == FrameDecoder::Event::header) {
      SLUICE_TRY(take_header(link));
      continue;
    }
    In* const in = std::exchange(link.receiving, nullptr);
    if (in == nullptr) continue;
    const Frame& frame = link.decoder.frame();
    const Ring& ring = in->ring.ring();
    ring.header(in->received) = {.digest = frame.digest, .bytes = frame.bytes};
    ring.control().tail.store(++in->received, std::memory_order_release);
  }
}

Status TcpTransport::take_header(Link& link) {
  const Frame& frame = link.decoder.frame();
  if ((frame.kind == FrameKind::greeting) == link.greeted)
    return {Code::refused, link.greeted ? "a second greeting" : "a frame before the greeting"};
  switch (frame.kind) {
    case FrameKind::open: return take_open(link);
    case FrameKind::message: return take_message(link);
    case FrameKind::credit: return take_credit(link);
    case FrameKind::greeting: break;
  }
  if (frame.rank != static_cast<std::uint32_t>(link.peer) || frame.ranks != static_cast<std::uint32_t>(peers_.ranks()))
    return {Code::refused, "the peer says that it is rank " + std::to_string(frame.rank) + " of " + std::to_string(frame.ranks)};
  link.greeted = true;
  return {};
}

Status TcpTransport::take_open(Link& link) {
  const Frame& frame = link.decoder.frame();
  if (closed_.contains(frame.flow.communicator)) return {};
  const auto out = link.out.find(frame.flow);
  if (out == link.out.end()) {
    if (link.early_opens.size() >= kEarlyOpensMax) return {Code::refused, "more than " + std::to_string(kEarlyOpensMax) + " flows opened"};
    if (!link.early_opens.emplace(frame.flow, frame.shape).second) return {Code::refused, describe(frame.flow) + " was opened twice"};
    return {};
  }
  const RingShape shape = out->second->ring.ring().shape();
  if (out->second->peer_open) return {Code::refused, describe(frame.flow) + " was opened twice"};
  if (frame.shape != shape)
    return {Code::refused, describe(frame.flow) + ": the peer opened it with " + describe(frame.shape) + ", we with " + describe(shape)};
  out->second->peer_open = true;
  return {};
}

Status TcpTransport::take_message(Link& link) {
  const Frame& frame = link.decoder.frame();
  const auto found = link.in.find(frame.flow);
  if (found == link.in.end()) {
    if (closed_.contains(frame.flow.communicator)) return {};  // a late one: thrown away
    return {Code::refused, "a message of " + describe(frame.flow) + ", which is not open here"};
  }
  In& in = *found->second;
  const RingShape shape = in.ring.ring().shape();
  if (frame.number != in.received)
    return {Code::refused, "message " + std::to_string(frame.number) + " of " + describe(frame.flow) + " came when " + std::to_string(in.received) + " was due"};
  if (frame.bytes > shape.slot_bytes)
    return {Code::refused, "a payload of " + std::to_string(frame.bytes) + " bytes for " + describe(frame.flow) + " with " + describe(shape)};
  if (in.received - in.told >= shape.slots)
    return {Code::refused, "a message of " + describe(frame.flow) + " without a credit: all " + std::to_string(shape.slots) + " slots are in use"};
  link.receiving = &in;
  link.decoder.place_payload(in.ring.ring().slot(in.received));
  return {};
}

Status TcpTransport::take_credit(Link& link) {
  const Frame& frame = link.decoder.frame();
  const auto found = link.out.find(frame.flow);
  if (found == link.out.end()) {
    if (closed_.contains(frame.flow.communicator)) return {};
    return {Code::refused, "a credit of " + describe(frame.flow) + ", which is not open here"};
  }
  Out& out = *found->second;
  std::atomic<std::uint64_t>& head = out.ring.ring().control().head;
  const std::uint64_t before = head.load(std::memory_order_relaxed);
  if (frame.number <= before || frame.number > out.sent)
    return {Code::refused, "a credit up to message " + std::to_string(frame.number) + " of " + describe(frame.flow) + ", which has " +
                               std::to_string(before) + " released and " + std::to_string(out.sent) + " sent"};
  head.store(frame.number, std::memory_order_release);
  return {};
}

// ---- sending

std::size_t TcpTransport::send(Link& link, bool all_credits) {
  std::size_t moved = 0;
  while (link.stream) {
    if (link.batch.empty()) moved += fill_batch(link, all_credits);
    if (link.batch.empty() || !link.writable) break;
    const Result<bool> sent = link.batch.send(link.stream.get());
    if (!sent.ok()) {
      lose(link, sent.status());
      return moved + 1;
    }
    link.writable = *sent;
    if (!*sent) break;
  }
  return moved;
}

std::size_t TcpTransport::fill_batch(Link& link, bool all_credits) {
  std::size_t frames = 0;
  for (; frames < link.control.size() && !link.batch.full(); ++frames) link.batch.add(link.control[frames], {});
  link.control.erase(link.control.begin(), link.control.begin() + static_cast<std::ptrdiff_t>(frames));
  const bool data = std::any_of(link.out_by_lane.begin(), link.out_by_lane.end(), [](const Out* out) { return out->sendable(); });
  frames += add_credits(link, all_credits || data);
  if (data) frames += add_messages(link);
  return frames;
}

std::size_t TcpTransport::add_credits(Link& link, bool all) {
  std::size_t frames = 0;
  for (In* const in : link.ins) {
    const std::uint64_t released = in->flow.released();
    const std::uint64_t untold = released - in->told;
    if (untold == 0 || (!all && 2 * untold < in->ring.ring().shape().slots)) continue;
    if (link.batch.full()) break;
    link.batch.add({.kind = FrameKind::credit, .flow = in->id, .number = released}, {});
    in->told = released;
    ++frames;
  }
  return frames;
}

// One message of each flow of the most urgent lane in turn until it has none, then the next lane.
std::size_t TcpTransport::add_messages(Link& link) {
  std::size_t frames = 0;
  const std::vector<Out*>& flows = link.out_by_lane;
  for (std::size_t begin = 0; begin < flows.size();) {
    std::size_t end = begin;
    while (end < flows.size() && flows[end]->id.lane == flows[begin]->id.lane) ++end;
    const std::size_t count = end - begin;
    for (std::size_t without = 0; without < count;) {
      if (link.batch.full()) return frames;
      Out& out = *flows[begin + link.turn++ % count];
      if (!out.sendable()) {
        ++without;
        continue;
      }
      without = 0;
      if (const Status added = add_message(link, out); !added.ok()) {
        lose(link, added);
        return frames + 1;
      }
      ++frames;
    }
    begin = end;
  }
  return frames;
}

Status TcpTransport::add_message(Link& link, Out& out) {
  const Ring& ring = out.ring.ring();
  const SlotHeader& header = ring.header(out.sent);
  if (header.described() || header.bytes > ring.shape().slot_bytes)
    return {Code::refused, "we committed a message of " + std::to_string(header.bytes) + " bytes to " + describe(out.id) + " with " + describe(ring.shape())};
  link.batch.add({.kind = FrameKind::message, .flow = out.id, .number = out.sent, .digest = header.digest, .bytes = header.bytes},
                 {ring.slot(out.sent), header.bytes});
  ++out.sent;
  return {};
}

// The link is over; rings stay while flows use them.
void TcpTransport::lose(Link& link, const Status& why) {
  link.stream.reset();
  link.batch.clear();
  link.control.clear();
  link.readable = link.writable = false;
  link.receiving = nullptr;
  const std::string text = "peer rank " + std::to_string(link.peer) + " (tcp): " + why.text();
  if (peers_.mark(link.peer, {why.code(), "rank " + std::to_string(rank_) + ": " + text}))
    log(why.code() == Code::peer_lost ? LogLevel::info : LogLevel::error, rank_, text);
}

// ---- waiting

void TcpTransport::wait(Nanoseconds at_most) {
  if (!sleeper_.prepared()) sleeper_.prepare();
  const bool more = std::any_of(live_.begin(), live_.end(), [](const Link* link) { return link->readable; });
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
