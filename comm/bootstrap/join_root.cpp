#include "comm/bootstrap/join_root.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice {
namespace {

// The others must hear the text before their own deadline.
constexpr Nanoseconds kAhead = std::chrono::milliseconds(200);

std::string who(const PeerInfo& peer) { return peer.host_name + ", process " + std::to_string(peer.pid); }

}  // namespace

JoinRoot::JoinRoot(EventLoop& loop, Channels& channels, ControlTree& tree, int ranks, PeerInfo self,
                   Nanoseconds deadline, JoinOutcome outcome)
    : loop_(loop),
      channels_(channels),
      tree_(tree),
      seats_(static_cast<std::size_t>(ranks)),
      began_(loop.now()),
      outcome_(std::move(outcome)) {
  seats_[0] = Seat{std::move(self), nullptr, 0};
  channels_.own(Purpose::join, this);
  arm_deadline(deadline);
}

std::vector<PeerInfo> JoinRoot::table() const {
  std::vector<PeerInfo> peers;
  for (const auto& seat : seats_) peers.push_back(seat->peer);
  return peers;
}

void JoinRoot::subtree_ready() {
  if (!outcome_) return;
  loop_.cancel(timer_);
  tree_.start(table());
  std::exchange(outcome_, nullptr)({});
}

void JoinRoot::opened(Channel& channel) {
  if (!outcome_) channels_.close(channel);  // the join is over
}

Status JoinRoot::frame(Channel& channel, FrameType type, std::span<const std::byte> body) {
  if (type != FrameType::join_request)
    return {Code::refused, "a " + std::string(name(type)) + " message instead of a join request"};
  SLUICE_TRY_ASSIGN(const JoinRequest request, decode_join_request(body));
  if (!outcome_) return {};
  return take(channel, request);
}

Status JoinRoot::take(Channel& channel, const JoinRequest& request) {
  if (request.rank != channel.peer) return {Code::refused, "a join request for another rank than was proved"};
  if (const Status fits = check(request); !fits.ok()) {
    channels_.send(channel, encode(JoinFailure{fits.code(), fits.text()}));
    fail(fits);
    return {};
  }
  seats_[static_cast<std::size_t>(request.rank)] = Seat{request.peer, &channel, channels_.local_address_of(channel)};
  arm_deadline(std::chrono::milliseconds(request.remaining_ms) - kAhead);
  if (++seated_ == static_cast<int>(seats_.size())) assign();
  return {};
}

// Whoever proved the secret and yet doesn't fit shows that the job was started wrongly: no use in waiting for it.
Status JoinRoot::check(const JoinRequest& request) const {
  const int ranks = static_cast<int>(seats_.size());
  const std::string rank = "rank " + std::to_string(request.rank);
  if (request.ranks != ranks)
    return {Code::invalid_argument, rank + " (" + who(request.peer) + ") believes in a job of " +
                                        std::to_string(request.ranks) + " ranks, rank 0 in one of " +
                                        std::to_string(ranks) + ": give all the same number of ranks"};
  if (request.rank < 1 || request.rank >= ranks)
    return {Code::invalid_argument, rank + " (" + who(request.peer) + ") is not a rank of a job of " +
                                        std::to_string(ranks) + " besides rank 0: give each process its own rank"};
  if (const auto& seat = seats_[static_cast<std::size_t>(request.rank)])
    return {Code::invalid_argument, rank + " was taken twice: by " + who(seat->peer) + " and by " + who(request.peer) +
                                        ": give each process its own rank"};
  return {};
}

// The earliest deadline counts, so that everybody hears from here who is missing.
void JoinRoot::arm_deadline(Nanoseconds left) {
  const Nanoseconds when = loop_.now() + std::max(left, Nanoseconds(0));
  if (timer_ != 0 && when >= deadline_) return;
  deadline_ = when;
  loop_.cancel(timer_);
  timer_ = loop_.after(when - loop_.now(), [this] { fail({Code::timeout, missing_text()}); });
}

std::string JoinRoot::missing_text() const {
  std::vector<Rank> missing;
  for (std::size_t rank = 0; rank < seats_.size(); ++rank)
    if (!seats_[rank]) missing.push_back(static_cast<Rank>(rank));
  const std::string after = " within " + seconds_text(loop_.now() - began_);
  if (missing.empty())
    return "all " + std::to_string(seats_.size()) + " ranks reached rank 0, but not each other" + after +
           ": a firewall may stand between their hosts (set SLUICE_INTERFACE or SLUICE_PORT_RANGE)";
  return list_ranks(missing) + " of " + std::to_string(seats_.size()) + " did not join" + after +
         ": start them, or give more time (SLUICE_JOIN_DEADLINE)";
}

void JoinRoot::give_addresses() {
  std::uint32_t reached_at = kLoopbackAddress;
  for (const auto& seat : seats_)
    if (seat->peer.host_id != seats_[0]->peer.host_id && seat->reached_at != 0) {
      reached_at = seat->reached_at;
      break;
    }
  for (auto& seat : seats_)
    if (seat->peer.address == 0) seat->peer.address = reached_at;
}

void JoinRoot::assign() {
  give_addresses();
  const TreeShape shape(static_cast<int>(seats_.size()));
  for (std::size_t rank = 1; rank < seats_.size(); ++rank) {
    const Rank parent = *shape.parent(static_cast<Rank>(rank));
    channels_.send(*seats_[rank]->channel, encode(Assignment{parent, seats_[static_cast<std::size_t>(parent)]->peer}));
  }
}

void JoinRoot::closed(Channel& channel, const Status& why) {
  const auto seat =
      std::find_if(seats_.begin(), seats_.end(), [&](const auto& one) { return one && one->channel == &channel; });
  if (seat == seats_.end()) {
    if (why.code() == Code::refused)
      log(LogLevel::warn, 0, "refused a joiner from " + channel.with + ": " + why.text());
    return;
  }
  (*seat)->channel = nullptr;
  if (!outcome_) return;  // it has the table and needs this stream no more
  fail({Code::peer_lost, "rank " + std::to_string(seat - seats_.begin()) + " (" + who((*seat)->peer) +
                             ") went away while the job was joining"});
}

void JoinRoot::fail(const Status& why) {
  if (!outcome_) return;
  loop_.cancel(timer_);
  for (const auto& seat : seats_)
    if (seat && seat->channel != nullptr) channels_.send(*seat->channel, encode(JoinFailure{why.code(), why.text()}));
  std::exchange(outcome_, nullptr)(why);
}

}  // namespace sluice
