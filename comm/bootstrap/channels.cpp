#include "comm/bootstrap/channels.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace sluice {
namespace {

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;
constexpr int kAcceptsPerRound = 64;
constexpr std::size_t kFramesPerWrite = 16;
constexpr Nanoseconds kPendingChance = std::chrono::milliseconds(250);  // before one may be closed to make room
constexpr Nanoseconds kAcceptPause = std::chrono::milliseconds(50);

Status ended() { return {Code::peer_lost, "the stream ended"}; }
Status broken(int error) { return system_error("the stream broke", error); }
Status not_watched() {
  return {Code::out_of_resource, "the kernel watches no more descriptors (fs.epoll.max_user_watches)"};
}

}  // namespace

Channels::Channels(EventLoop& loop, const Secret& secret, Rank self) : loop_(loop), secret_(secret), self_(self) {}

Channels::~Channels() = default;

Status Channels::listen(Listener listener) {
  auto fresh = std::make_unique<Listening>();
  Listening& added = *fresh;
  added.listener = std::move(listener);
  added.watch = loop_.watch(added.listener.fd.get(), EPOLLIN, [this, &added](std::uint32_t) { accept_all(added); });
  if (added.watch == 0) return system_error("can't watch the listener at " + format(added.listener.at), errno);
  listeners_.push_back(std::move(fresh));
  return {};
}

void Channels::stop_listening(const Endpoint& at) {
  std::erase_if(listeners_, [&](const std::unique_ptr<Listening>& one) {
    const bool match = format(one->listener.at) == format(at);
    if (match) loop_.unwatch(one->watch, one->listener.fd.get());
    return match;
  });
}

Channel& Channels::dial(const Endpoint& to, Purpose purpose, LinkId peer, Nanoseconds handshake_deadline) {
  Channel& channel = add();
  channel.purpose = purpose;
  channel.peer = peer.peer;
  channel.lane = peer.lane;
  channel.dialed = true;
  channel.with = format(to);
  const std::uint64_t number = channel.number;
  Connecting connecting = start_connecting(to);
  channel.fd = std::move(connecting.fd);
  Status why;
  if (connecting.error != 0) {
    why = system_error("can't connect to " + channel.with, connecting.error);
  } else if (!watch(channel, EPOLLOUT)) {
    why = not_watched();
  }
  if (!why.ok()) {
    loop_.post([this, number, why] {
      if (Channel* found = find(number)) fail(*found, why);
    });
    return channel;
  }
  arm_deadline(channel, handshake_deadline);
  return channel;
}

void Channels::send(Channel& channel, SharedBytes frame) {
  if (channel.stage != Stage::open && channel.stage != Stage::shaking) return;
  channel.out_bytes += frame->size();
  channel.out.push_back(std::move(frame));
  if (!channel.wants_write) flush(channel);
}

void Channels::finish(Channel& channel, Nanoseconds at_most) {
  if (channel.stage != Stage::open) return close(channel);
  channel.stage = Stage::finishing;
  arm_deadline(channel, at_most);
  if (channel.out.empty()) ::shutdown(channel.fd.get(), SHUT_WR);
}

void Channels::close(Channel& channel) {
  if (channel.stage != Stage::closed) release(channel);
}

UniqueFd Channels::take(Channel& channel) {
  SLUICE_ASSERT(channel.stage == Stage::open && channel.out.empty() && channel.in.empty(), "a fresh stream is taken");
  loop_.unwatch(channel.watch, channel.fd.get());
  channel.watch = 0;
  UniqueFd fd = std::move(channel.fd);
  release(channel);
  return fd;
}

std::size_t Channels::count(Purpose purpose) const {
  return static_cast<std::size_t>(std::count_if(channels_.begin(), channels_.end(), [&](const auto& one) {
    return one.second->purpose == purpose && one.second->stage != Stage::closed;
  }));
}

void Channels::sweep() {
  for (const std::uint64_t number : swept_) channels_.erase(number);
  swept_.clear();
}

// ---- accepting

void Channels::accept_all(Listening& from) {
  for (int i = 0; i < kAcceptsPerRound; ++i) {
    if (!make_room()) return;
    Accepted accepted = accept_from(from.listener);
    if (accepted.out_of_descriptors) {
      log(LogLevel::warn, self_, "no descriptors left for a new stream: raise the limit of open files (ulimit -n)");
      return pause_accepting();
    }
    if (!accepted.fd) return;
    add_inbound(std::move(accepted));
  }
}

void Channels::add_inbound(Accepted accepted) {
  Channel& channel = add();
  channel.with = accepted.from;
  channel.fd = std::move(accepted.fd);
  channel.stage = Stage::shaking;
  pending_.push_back(channel.number);
  ++pending_count_;
  if (accepted.other_user) return refuse(channel, {Code::refused, "it belongs to another user"});
  Nonce nonce{};
  if (const Status random = fill_random(nonce); !random.ok()) return refuse(channel, random);
  channel.shake = std::make_unique<Handshake>(Handshake::listener(secret_, self_, nonce));
  if (!watch(channel, EPOLLIN)) return refuse(channel, not_watched());
  arm_deadline(channel, kHandshakeDeadline);
}

// False: no room now, and accepting is paused.
bool Channels::make_room() {
  if (pending_count_ < kPendingMax) return true;
  while (!pending_.empty()) {
    Channel* oldest = find(pending_.front());
    if (oldest == nullptr || oldest->stage != Stage::shaking) {
      pending_.pop_front();
      continue;
    }
    if (loop_.now() - oldest->since < kPendingChance) break;
    refuse(*oldest, {Code::refused, "it did not prove itself in time and others wait"});
    return true;
  }
  pause_accepting();
  return false;
}

void Channels::pause_accepting() {
  for (const auto& one : listeners_) loop_.change(one->watch, one->listener.fd.get(), 0);
  loop_.after(kAcceptPause, [this] {
    for (const auto& one : listeners_) loop_.change(one->watch, one->listener.fd.get(), EPOLLIN);
  });
}

// ---- events

void Channels::ready(Channel& channel, std::uint32_t events) {
  if (channel.stage == Stage::connecting) return finish_connecting(channel);
  if ((events & EPOLLOUT) != 0) flush(channel);
  if (channel.stage == Stage::finishing) return drain(channel);
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  if (channel.stage == Stage::shaking) return read_handshake(channel);
  if (channel.stage == Stage::open) return read_frames(channel);
}

void Channels::finish_connecting(Channel& channel) {
  if (const int error = connect_error(channel.fd.get()); error != 0)
    return fail(channel, system_error("can't connect to " + channel.with, error));
  Hello hello{channel.purpose, self_, channel.peer, {}, channel.lane};
  if (const Status random = fill_random(hello.nonce); !random.ok()) return fail(channel, random);
  channel.stage = Stage::shaking;
  channel.shake = std::make_unique<Handshake>(Handshake::dialer(secret_, hello));
  loop_.change(channel.watch, channel.fd.get(), EPOLLIN);
  send(channel, channel.shake->take_output());
}

void Channels::read_handshake(Channel& channel) {
  Handshake& shake = *channel.shake;
  while (!shake.done()) {
    std::array<std::byte, kHelloBytes> buffer;
    const std::size_t missing = shake.wanted() - channel.in.size();
    const ssize_t got = ::recv(channel.fd.get(), buffer.data(), missing, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return fail(channel, got == 0 ? ended() : broken(errno));
    channel.in.insert(channel.in.end(), buffer.begin(), buffer.begin() + got);
    if (channel.in.size() < shake.wanted()) continue;
    const Bytes whole = std::exchange(channel.in, {});
    if (const Status fed = shake.feed(whole); !fed.ok()) return refuse(channel, fed);
    if (!channel.dialed && owner(shake.hello().purpose) == nullptr)
      return refuse(channel, {Code::refused,
                              "it wants to " + std::string(name(shake.hello().purpose)) + ", which is not open here"});
    channel.proof_sent = shake.proof_sent();
    if (Bytes out = shake.take_output(); !out.empty()) send(channel, std::move(out));
  }
  proved(channel);
}

void Channels::proved(Channel& channel) {
  if (!channel.dialed) {
    channel.purpose = channel.shake->hello().purpose;
    channel.lane = channel.shake->hello().lane;
    channel.peer = channel.shake->hello().from;
    --pending_count_;
  }
  loop_.cancel(channel.deadline_timer);
  channel.shake.reset();
  channel.stage = Stage::open;
  if (!channel.out.empty()) return fail(channel, {Code::system, "a fresh stream takes no bytes"});
  owner(channel.purpose)->opened(channel);
}

void Channels::read_frames(Channel& channel) {
  const std::size_t had = channel.in.size();
  channel.in.resize(had + kReceiveBytes);
  const ssize_t got = ::recv(channel.fd.get(), channel.in.data() + had, kReceiveBytes, 0);
  const int error = errno;
  channel.in.resize(had + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0 && (error == EAGAIN || error == EINTR)) return;
  if (got <= 0) return fail(channel, got == 0 ? ended() : broken(error));
  parse_frames(channel);
}

void Channels::parse_frames(Channel& channel) {
  std::size_t at = 0;
  while (channel.stage == Stage::open && channel.in.size() - at >= kFrameHeaderBytes) {
    const std::span<const std::byte> rest = std::span(channel.in).subspan(at);
    const auto header = decode_header(rest.first<kFrameHeaderBytes>());
    if (!header.ok()) return fail(channel, header.status());
    const std::size_t whole = kFrameHeaderBytes + header->body_bytes;
    if (rest.size() < whole) break;
    const auto body = rest.subspan(kFrameHeaderBytes, header->body_bytes);
    if (const Status taken = owner(channel.purpose)->frame(channel, header->type, body); !taken.ok())
      return fail(channel, taken);
    at += whole;
  }
  channel.in.erase(channel.in.begin(), channel.in.begin() + static_cast<std::ptrdiff_t>(at));
}

void Channels::flush(Channel& channel) {
  while (!channel.out.empty()) {
    std::array<iovec, kFramesPerWrite> pieces{};
    std::size_t count = 0;
    for (; count < std::min(kFramesPerWrite, channel.out.size()); ++count) {
      const std::size_t skip = count == 0 ? channel.out_sent : 0;
      pieces[count] = {const_cast<std::byte*>(channel.out[count]->data()) + skip, channel.out[count]->size() - skip};
    }
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(channel.fd.get(), &message, MSG_NOSIGNAL);
    if (sent < 0) break;  // full, or broken, which the next read reports
    channel.out_sent += static_cast<std::size_t>(sent);
    while (!channel.out.empty() && channel.out_sent >= channel.out.front()->size()) {
      channel.out_sent -= channel.out.front()->size();
      channel.out_bytes -= channel.out.front()->size();
      channel.out.pop_front();
    }
  }
  const bool wants_write = !channel.out.empty();
  if (wants_write != std::exchange(channel.wants_write, wants_write))
    loop_.change(channel.watch, channel.fd.get(), wants_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
  if (!wants_write && channel.stage == Stage::finishing) ::shutdown(channel.fd.get(), SHUT_WR);
}

void Channels::drain(Channel& channel) {
  std::array<std::byte, 4096> ignored;
  ssize_t got = 0;
  do got = ::recv(channel.fd.get(), ignored.data(), ignored.size(), 0);
  while (got > 0);
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) release(channel);
}

// ---- ends

void Channels::fail(Channel& channel, const Status& why) {
  if (channel.stage == Stage::closed) return;
  if (!channel.dialed && channel.stage == Stage::shaking) return refuse(channel, why);
  release(channel);
  if (channel.reached != Stage::finishing) owner(channel.purpose)->closed(channel, why);
}

void Channels::refuse(Channel& channel, const Status& why) {
  if (!channel.dialed) report_refusal(channel, why);
  release(channel);
  if (channel.dialed) owner(channel.purpose)->closed(channel, why);
}

void Channels::report_refusal(const Channel& channel, const Status& why) {
  // Nothing wrong was said: a probe of whether we live, a peer that needs us no more, a scanner.
  const bool greeted = channel.shake != nullptr && channel.shake->greeted();
  const bool blameless = why.code() != Code::refused && (channel.in.empty() || greeted);
  if (blameless && !(greeted && why.code() == Code::timeout))
    return log(LogLevel::debug, self_, "a stream from " + channel.with + " went away unproved: " + why.text());
  ++refusals_;
  if (refusals_ > kRefusalsLogged && !std::has_single_bit(refusals_)) return;
  log(LogLevel::warn, self_,
      "refused a stream from " + channel.with + ": " + why.text() +
          (refusals_ > kRefusalsLogged ? " (refusal number " + std::to_string(refusals_) + ")" : ""));
}

void Channels::release(Channel& channel) {
  if (!channel.dialed && channel.stage == Stage::shaking) --pending_count_;
  if (channel.watch != 0) loop_.unwatch(channel.watch, channel.fd.get());
  loop_.cancel(channel.deadline_timer);
  channel.watch = 0;
  channel.fd.reset();
  channel.reached = channel.stage;
  channel.stage = Stage::closed;
  swept_.push_back(channel.number);
}

void Channels::arm_deadline(Channel& channel, Nanoseconds at_most) {
  loop_.cancel(channel.deadline_timer);
  channel.deadline_timer = loop_.after(at_most, [this, &channel] {
    if (channel.stage == Stage::finishing) return release(channel);
    fail(channel, {Code::timeout,
                   std::string("no ") + (channel.stage == Stage::connecting ? "answer" : "handshake") + " in time"});
  });
}

bool Channels::watch(Channel& channel, std::uint32_t events) {
  channel.watch = loop_.watch(channel.fd.get(), events, [this, &channel](std::uint32_t seen) { ready(channel, seen); });
  return channel.watch != 0;
}

Channel& Channels::add() {
  auto fresh = std::make_unique<Channel>();
  fresh->number = next_number_++;
  fresh->since = loop_.now();
  return *channels_.emplace(fresh->number, std::move(fresh)).first->second;
}

Channel* Channels::find(std::uint64_t number) {
  const auto found = channels_.find(number);
  return found == channels_.end() || found->second->stage == Stage::closed ? nullptr : found->second.get();
}

}  // namespace sluice
