#include "transport/tcp/tcp_link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "transport/tcp/socket_options.h"

namespace sluice {
namespace {

constexpr std::size_t kReadBudget = 1 << 20;     // bytes read from one link before others get their turn
constexpr std::size_t kEarlyOpensMax = 1 << 16;  // flows that a peer may open before us, per link
constexpr int kUnsentInKernel = 1 << 17;         // bytes not yet on the wire that the kernel may hold of a link

template <typename Flows>
bool any_of_communicator(const Flows& flows, std::uint64_t communicator) {
  return std::any_of(flows.begin(), flows.end(),
                     [&](const auto& entry) { return entry.first.communicator == communicator; });
}

template <typename Flows>
void forget_communicator(Flows& flows, std::uint64_t communicator, std::size_t& budget) {
  std::erase_if(flows, [&](const auto& entry) {
    if (entry.first.communicator != communicator) return false;
    budget += ring_bytes(entry.second->ring.ring().shape());
    return true;
  });
}

}  // namespace

// ---- flows

Error TcpLink::other_shape(const FlowId& flow, RingShape theirs, RingShape ours) const {
  return {Code::refused,
          describe(flow) + ": the peer opened it with " + describe(theirs) + ", we with " + describe(ours)};
}

Result<OutFlow*> TcpLink::open_out(const FlowId& flow, RingShape shape, TcpLane& lane, std::size_t& budget) {
  if (const auto known = out_.find(flow); known != out_.end()) {
    if (known->second->ring.ring().shape() == shape) return &known->second->flow;
    return Error{Code::invalid_argument, describe(flow) + " to rank " + std::to_string(peer()) + " is open with " +
                                             describe(known->second->ring.ring().shape())};
  }
  auto made = std::make_unique<Out>();
  SLUICE_TRY_ASSIGN(made->ring, RingMemory::make(shape));
  budget -= ring_bytes(shape);
  made->id = flow;
  made->flow.bind(made->ring.ring(), {}, nullptr, 0);
  Out* const out = out_.emplace(flow, std::move(made)).first->second.get();
  if (to_self()) {
    if (const auto in = in_.find(flow); in != in_.end()) in->second->flow.bind(out->ring.ring(), {}, nullptr, 0);
    return &out->flow;
  }
  auto place = std::find_if(lanes_.begin(), lanes_.end(), [&](const auto& one) { return one->of == &lane; });
  if (place == lanes_.end()) {
    place = lanes_.insert(place, std::make_unique<Lane>());
    (*place)->of = &lane;
  }
  (*place)->outs.push_back(out);
  const auto early = early_opens_.extract(flow);
  if (early.empty()) return &out->flow;
  if (early.mapped() != shape) return other_shape(flow, early.mapped(), shape);
  out->peer_open = true;
  return &out->flow;
}

Result<InFlow*> TcpLink::open_in(const FlowId& flow, RingShape shape, std::size_t& budget) {
  if (const auto known = in_.find(flow); known != in_.end()) {
    if (known->second->ring.ring().shape() == shape) return &known->second->flow;
    return Error{Code::invalid_argument, describe(flow) + " from rank " + std::to_string(peer()) + " is open with " +
                                             describe(known->second->ring.ring().shape())};
  }
  auto made = std::make_unique<In>();
  SLUICE_TRY_ASSIGN(made->ring, RingMemory::make(shape));
  budget -= ring_bytes(shape);
  made->id = flow;
  In* const in = in_.emplace(flow, std::move(made)).first->second.get();
  if (to_self()) {
    if (const auto out = out_.find(flow); out != out_.end()) in->flow.bind(out->second->ring.ring(), {}, nullptr, 0);
    return &in->flow;
  }
  ins_.push_back(in);
  in->flow.bind(in->ring.ring(), {}, nullptr, 0);
  if (live()) control_.push_back({.kind = FrameKind::open, .flow = flow, .shape = shape});
  return &in->flow;
}

void TcpLink::close_flows(std::uint64_t communicator, std::size_t& budget) {
  if (any_of_communicator(out_, communicator)) batch_.own_rest();  // a frame that has begun must end
  if (receiving_ != nullptr && receiving_->id.communicator == communicator) {
    receiving_ = nullptr;
    decoder_.place_payload(nullptr);
  }
  for (const auto& lane : lanes_)
    std::erase_if(lane->outs, [communicator](const Out* out) { return out->id.communicator == communicator; });
  std::erase_if(lanes_, [](const auto& lane) { return lane->outs.empty(); });
  std::erase_if(ins_, [communicator](const In* in) { return in->id.communicator == communicator; });
  std::erase_if(early_opens_, [communicator](const auto& entry) { return entry.first.communicator == communicator; });
  std::erase_if(control_, [communicator](const Frame& frame) {
    return frame.kind == FrameKind::open && frame.flow.communicator == communicator;
  });
  forget_communicator(in_, communicator, budget);
  forget_communicator(out_, communicator, budget);
}

// ---- the connection

void TcpLink::start(UniqueFd stream) {
  stream_ = std::move(stream);
  // Without these it works too, only slower or less urgent: a stream that is no TCP socket has none of them.
  const int on = 1;
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(fd(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentInKernel, sizeof kUnsentInKernel);
  mark_lane(fd(), id().lane);
  writable_ = true;
  control_.push_back({.kind = FrameKind::greeting,
                      .rank = static_cast<std::uint32_t>(ends_.self),
                      .ranks = static_cast<std::uint32_t>(ends_.ranks)});
  for (const In* in : ins_)
    control_.push_back({.kind = FrameKind::open, .flow = in->id, .shape = in->ring.ring().shape()});
}

void TcpLink::close() {
  stream_.reset();
  batch_.clear();
  control_.clear();
  readable_ = writable_ = false;
  receiving_ = nullptr;
}

void TcpLink::take_event(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) writable_ = true;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) readable_ = true;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) ended_ = true;
}

// ---- receiving

Result<std::size_t> TcpLink::receive() {
  std::size_t moved = 0;
  for (std::size_t budget = kReadBudget; readable_ && budget != 0;) {
    std::array<iovec, 2> space = decoder_.space();
    msghdr message{};
    message.msg_iov = space.data();
    message.msg_iovlen = space[1].iov_len != 0 ? 2 : 1;
    const ssize_t got = ::recvmsg(fd(), &message, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      readable_ = false;
      break;
    }
    if (got < 0 && errno != ECONNRESET)
      return Error{Code::peer_lost, std::string("the link broke: ") + std::strerror(errno)};
    if (got <= 0) return Error{Code::peer_lost, "the peer closed the link: its process ended or it left"};
    const auto bytes = static_cast<std::size_t>(got);
    if (bytes < space[0].iov_len + space[1].iov_len && !ended_) readable_ = false;  // that was all
    budget -= std::min(budget, bytes);
    decoder_.filled(bytes);
    SLUICE_TRY_ASSIGN(const std::size_t frames, take_frames());
    moved += 1 + frames;
  }
  return moved;
}

Result<std::size_t> TcpLink::take_frames() {
  for (std::size_t taken = 0;; ++taken) {
    SLUICE_TRY_ASSIGN(const FrameDecoder::Event event, decoder_.next());
    if (event == FrameDecoder::Event::nothing) return taken;
    if (event == FrameDecoder::Event::header) {
      SLUICE_TRY(take_header());
      continue;
    }
    In* const in = std::exchange(receiving_, nullptr);
    if (in == nullptr) continue;
    const Frame& frame = decoder_.frame();
    const Ring& ring = in->ring.ring();
    ring.publish(in->received++, {.digest = frame.digest, .bytes = frame.bytes});
  }
}

Status TcpLink::take_header() {
  const Frame& frame = decoder_.frame();
  if ((frame.kind == FrameKind::greeting) == greeted_)
    return {Code::refused, greeted_ ? "a second greeting" : "a frame before the greeting"};
  switch (frame.kind) {
    case FrameKind::open: return take_open(frame);
    case FrameKind::message: return take_message(frame);
    case FrameKind::credit: return take_credit(frame);
    case FrameKind::greeting: break;
  }
  if (frame.rank != static_cast<std::uint32_t>(peer()) || frame.ranks != static_cast<std::uint32_t>(ends_.ranks))
    return {Code::refused,
            "the peer says that it is rank " + std::to_string(frame.rank) + " of " + std::to_string(frame.ranks)};
  greeted_ = true;
  return {};
}

Status TcpLink::take_open(const Frame& frame) {
  if (frame.flow.lane != id().lane)
    return {Code::refused, describe(frame.flow) + " was opened on the link of lane " + std::to_string(id().lane)};
  if (closed_.contains(frame.flow.communicator)) return {};
  const auto out = out_.find(frame.flow);
  if (out == out_.end()) {
    if (early_opens_.size() >= kEarlyOpensMax)
      return {Code::refused, "more than " + std::to_string(kEarlyOpensMax) + " flows opened"};
    if (!early_opens_.emplace(frame.flow, frame.shape).second)
      return {Code::refused, describe(frame.flow) + " was opened twice"};
    return {};
  }
  const RingShape shape = out->second->ring.ring().shape();
  if (out->second->peer_open) return {Code::refused, describe(frame.flow) + " was opened twice"};
  if (frame.shape != shape) return other_shape(frame.flow, frame.shape, shape);
  out->second->peer_open = true;
  return {};
}

Status TcpLink::take_message(const Frame& frame) {
  const auto found = in_.find(frame.flow);
  if (found == in_.end()) {
    if (closed_.contains(frame.flow.communicator)) return {};  // a late one: thrown away
    return {Code::refused, "a message of " + describe(frame.flow) + ", which is not open here"};
  }
  In& in = *found->second;
  const RingShape shape = in.ring.ring().shape();
  if (frame.number != in.received)
    return {Code::refused, "message " + std::to_string(frame.number) + " of " + describe(frame.flow) + " came when " +
                               std::to_string(in.received) + " was due"};
  if (frame.bytes > shape.slot_bytes)
    return {Code::refused, "a payload of " + std::to_string(frame.bytes) + " bytes for " + describe(frame.flow) +
                               " with " + describe(shape)};
  if (in.received - in.told >= shape.slots)
    return {Code::refused, "a message of " + describe(frame.flow) + " without a credit: all " +
                               std::to_string(shape.slots) + " slots are in use"};
  receiving_ = &in;
  decoder_.place_payload(in.ring.ring().place(in.received, decoder_.frame().bytes));
  return {};
}

Status TcpLink::take_credit(const Frame& frame) {
  const auto found = out_.find(frame.flow);
  if (found == out_.end()) {
    if (closed_.contains(frame.flow.communicator)) return {};
    return {Code::refused, "a credit of " + describe(frame.flow) + ", which is not open here"};
  }
  Out& out = *found->second;
  std::atomic<std::uint64_t>& head = out.ring.ring().control().head;
  const std::uint64_t before = head.load(std::memory_order_relaxed);
  if (frame.number <= before || frame.number > out.sent)
    return {Code::refused, "a credit up to message " + std::to_string(frame.number) + " of " + describe(frame.flow) +
                               ", which has " + std::to_string(before) + " released and " + std::to_string(out.sent) +
                               " sent"};
  head.store(frame.number, std::memory_order_release);
  return {};
}

}  // namespace sluice
