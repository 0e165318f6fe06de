// The streams of one rank's control plane: accepted or dialed, proved by a handshake, then carrying frames. Whoever owns a
// purpose (join, tree, links) hears of its channels when they are proved, of each frame, and of their end.
//
//   Strangers  get a nonce and nothing else. Until a stream is proved it holds a few hundred bytes, has kHandshakeDeadline, and
//              there are at most kPendingMax: when more come, the oldest that has had its chance is closed, so that half
//              handshakes can delay a job, not stop it.
//   Refusals   are logged with the address: the first kRefusalsLogged, then each power of two, so nobody fills a disk.
//   Threads    the loop's.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "comm/bootstrap/event_loop.h"
#include "comm/bootstrap/flood_log.h"
#include "comm/bootstrap/handshake.h"
#include "comm/bootstrap/messages.h"
#include "comm/bootstrap/sockets.h"

namespace sluice {

inline constexpr Nanoseconds kHandshakeDeadline = std::chrono::seconds(3);
inline constexpr std::size_t kPendingMax = 256;
inline constexpr std::uint64_t kRefusalsLogged = 20;

enum class Stage : std::uint8_t { connecting, shaking, open, finishing, closed };

// One stream. Its number names it for good: a channel is destroyed after the round in which it closed.
struct Channel {
  std::uint64_t number = 0;
  Purpose purpose = Purpose::join;
  std::uint8_t lane = 0;  // of a link
  Rank peer = -1;         // proved once open
  bool dialed = false;
  std::string with;  // address for messages
  Stage stage = Stage::connecting;
  Stage reached = Stage::connecting;  // the furthest stage before it closed
  bool proof_sent = false;            // dialed: it ended after our proof, or was open

  // Of Channels alone:
  UniqueFd fd;
  std::uint64_t watch = 0;
  std::uint64_t deadline_timer = 0;
  Nanoseconds since{0};
  std::unique_ptr<Handshake> shake;
  Bytes in;                     // received, not yet taken
  std::deque<SharedBytes> out;  // queued; the first from out_sent on
  std::size_t out_sent = 0;
  std::size_t out_bytes = 0;
  bool wants_write = false;
};

class ChannelOwner {
 public:
  virtual ~ChannelOwner() = default;
  // Proved. A link owner takes the stream with Channels::take.
  virtual void opened(Channel& channel) = 0;
  // Refused frames close the channel: the owner returns what was wrong.
  virtual Status frame(Channel& channel, FrameType type, std::span<const std::byte> body) = 0;
  // Not called for channels that the owner closed or took. `why`: peer_lost (end of stream, broken), refused (protocol).
  virtual void closed(Channel& channel, const Status& why) = 0;
};

class Channels {
 public:
  // All borrowed.
  Channels(EventLoop& loop, const Secret& secret, Rank self);
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  // Borrowed; nullptr, as at the beginning: streams for this purpose are refused.
  void own(Purpose purpose, ChannelOwner* owner) { owners_[static_cast<std::size_t>(purpose)] = owner; }

  // Another secret for streams that begin from now on. Only while nothing listens here.
  void change_secret(const Secret& secret) { secret_ = secret; }

  // Accepts from now on. Streams that come here believe to reach `self`.
  Status listen(Listener listener);
  // Stops the listener at `at`.
  void stop_listening(const Endpoint& at);

  // Opens a stream; the owner of `purpose` hears opened() or closed(), never from inside this call. `handshake_deadline`: how
  // long connecting and the handshake may take.
  Channel& dial(const Endpoint& to, Purpose purpose, LinkId peer, Nanoseconds handshake_deadline);

  void send(Channel& channel, SharedBytes frame);
  void send(Channel& channel, Bytes frame) { send(channel, std::make_shared<const Bytes>(std::move(frame))); }
  // Closes after what is queued was sent and the peer has closed, or after `at_most`. The owner hears nothing more of it.
  void finish(Channel& channel, Nanoseconds at_most);
  void close(Channel& channel);
  // Takes the stream away (links): nothing of it has been read beyond the handshake.
  UniqueFd take(Channel& channel);

  // Channels of any stage but closed.
  std::size_t count(Purpose purpose) const;
  std::size_t bytes_queued(const Channel& channel) const { return channel.out_bytes - channel.out_sent; }
  std::optional<std::uint32_t> silence(const Channel& channel) const { return silence_ms(channel.fd.get()); }
  std::uint32_t local_address_of(const Channel& channel) const { return local_address(channel.fd.get()); }

  void sweep();  // destroys closed channels; after each round

 private:
  struct Listening {
    Listener listener;
    std::uint64_t watch = 0;
  };

  void accept_all(Listening& from);
  void add_inbound(Accepted accepted);
  bool make_room();
  void pause_accepting();

  void ready(Channel& channel, std::uint32_t events);
  void finish_connecting(Channel& channel);
  void read_handshake(Channel& channel);
  void proved(Channel& channel);
  void read_frames(Channel& channel);
  void parse_frames(Channel& channel);
  void flush(Channel& channel);
  void drain(Channel& channel);

  void fail(Channel& channel, const Status& why);
  void refuse(Channel& channel, const Status& why);
  void report_refusal(const Channel& channel, const Status& why);
  void release(Channel& channel);
  void arm_deadline(Channel& channel, Nanoseconds at_most);
  bool watch(Channel& channel, std::uint32_t events);
  Channel& add();
  Channel* find(std::uint64_t number);
  ChannelOwner* owner(Purpose purpose) const { return owners_[static_cast<std::size_t>(purpose)]; }

  EventLoop& loop_;
  Secret secret_;
  Rank self_;
  std::array<ChannelOwner*, kPurposes> owners_{};
  std::vector<std::unique_ptr<Listening>> listeners_;
  std::map<std::uint64_t, std::unique_ptr<Channel>> channels_;
  std::deque<std::uint64_t> pending_;  // inbound, not proved, oldest first; may name closed ones
  std::size_t pending_count_ = 0;
  std::vector<std::uint64_t> swept_;
  std::uint64_t next_number_ = 1;
  std::uint64_t refusals_ = 0;
};

}  // namespace sluice
