#include "comm/bootstrap/join_member.h"

#include <algorithm>
#include <utility>

#include "comm/bootstrap/root_listener.h"
#include "comm/bootstrap/secrets.h"

namespace sluice {
namespace {

constexpr Nanoseconds kPauseMax = std::chrono::milliseconds(250);
constexpr Nanoseconds kTableGrace =
    std::chrono::seconds(2);  // the root may be done, and gone, before the table is here

}  // namespace

JoinMember::JoinMember(EventLoop& loop, Channels& channels, ControlTree& tree, JoinPlan& plan, JoinOutcome outcome)
    : loop_(loop),
      channels_(channels),
      tree_(tree),
      plan_(plan),
      outcome_(std::move(outcome)),
      deadline_(loop.now() + plan.deadline) {
  channels_.own(Purpose::join, this);
  timer_ = loop_.after(plan.deadline, [this] {
    const bool refused = refused_since_ > Nanoseconds(0) && !introduced_;
    finish({refused ? Code::refused : Code::timeout, waiting_text()});
  });
}

void JoinMember::list_places() {
  places_.clear();
  place_ = 0;
  const bool same_host = rendezvous_.host_id == plan_.self.host_id;
  if (same_host || rendezvous_.host_id == 0 || rendezvous_.addresses.empty())
    places_.push_back({root_unix_name(rendezvous_.secret), 0, 0});
  for (int port = 0; port < rendezvous_.ports; ++port)
    for (const std::uint32_t address : rendezvous_.addresses)
      places_.push_back({"", address, static_cast<std::uint16_t>(rendezvous_.port + port)});
}

void JoinMember::next_round() {
  auto rendezvous = plan_.source();
  if (!rendezvous.ok() && rendezvous.error().code != Code::timeout) return finish(rendezvous.status());
  if (!rendezvous.ok()) {
    last_failure_ = rendezvous.error().text;
    places_.clear();
    return end_of_round();
  }
  rendezvous_ = *rendezvous;
  channels_.change_secret(rendezvous_.secret);
  list_places();
  refused_ = false;
  try_next();
}

void JoinMember::try_next() {
  if (place_ == places_.size()) return end_of_round();
  const Nanoseconds at_most = pause_ < kPauseMax ? Nanoseconds(std::chrono::seconds(1)) : kHandshakeDeadline;
  root_ = &channels_.dial(places_[place_++], Purpose::join, {0}, at_most);
}

void JoinMember::end_of_round() {
  if (refused_ && refused_since_ == Nanoseconds(0)) refused_since_ = loop_.now();
  const Nanoseconds patience = rendezvous_.ports == 1 ? Nanoseconds(0) : kRefusalPatience;
  if (refused_ && !plan_.source_changes && loop_.now() - refused_since_ >= patience)
    return finish({Code::refused, last_failure_});
  pause_timer_ = loop_.after(pause_, [this] { next_round(); });
  pause_ = std::min<Nanoseconds>(pause_ * 2, kPauseMax);
}

void JoinMember::opened(Channel& channel) {
  if (&channel != root_) return channels_.close(channel);
  if (const Status introduced = introduce(channel); !introduced.ok()) finish(introduced);
}

Status JoinMember::introduce(Channel& channel) {
  const std::uint32_t here = channels_.local_address_of(channel);
  LocalAddress own{here, here};
  if (here == 0 || is_loopback(here)) own = local_address_for(rendezvous_);
  if (!plan_.interface.empty()) {
    SLUICE_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, list_interfaces());
    SLUICE_TRY_ASSIGN(own.listen, choose_address(plan_.interface, interfaces));
    own.told = own.listen;
  }
  SLUICE_TRY(open_own_listeners(channels_, own.listen, own.told, plan_.port_range, plan_.self));
  introduced_ = true;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - loop_.now()).count();
  const auto left_ms = static_cast<std::uint32_t>(std::clamp<std::int64_t>(left, 0, UINT32_MAX));
  channels_.send(channel, encode(JoinRequest{plan_.rank, plan_.ranks, left_ms, plan_.self}));
  return {};
}

Status JoinMember::frame(Channel&, FrameType type, std::span<const std::byte> body) {
  if (type == FrameType::join_failure) {
    SLUICE_TRY_ASSIGN(const JoinFailure failure, decode_join_failure(body));
    finish({failure.code, failure.text});
    return {};
  }
  if (type != FrameType::assignment || assigned_)
    return {Code::refused, "rank 0 sent a " + std::string(name(type)) + " message"};
  SLUICE_TRY_ASSIGN(const Assignment assignment, decode_assignment(body));
  if (assignment.parent != *TreeShape(plan_.ranks).parent(plan_.rank))
    return {Code::refused, "rank 0 sent a wrong place in the tree"};
  assigned_ = true;
  tree_.connect_to_parent(assignment.parent, assignment.peer);
  return {};
}

void JoinMember::closed(Channel& channel, const Status& why) {
  if (!outcome_ || &channel != root_) return;
  root_ = nullptr;
  if (assigned_) {
    pause_timer_ = loop_.after(kTableGrace, [this] {
      finish({Code::peer_lost, "rank 0 went away while the job was joining"});
    });
  } else if (introduced_) {
    finish({why.code() == Code::refused ? Code::refused : Code::peer_lost,
            "rank 0 went away while rank " + std::to_string(plan_.rank) +
                " waited for the job to be complete: " + why.text()});
  } else {
    const bool at_proof = channel.proof_sent && channel.reached == Stage::shaking && why.code() != Code::timeout;
    // "refused" as code means that our check failed: whoever listens there is not of this job.
    if (at_proof && why.code() != Code::refused) {
      refused_ = true;
      last_failure_ =
          "rank 0 at " + channel.with + " refused rank " + std::to_string(plan_.rank) +
          ": the secret (of the unique id, SLUICE_SECRET or the rendezvous file) is not the one of that job";
    } else if (!refused_) {
      last_failure_ = channel.with + ": " + why.text();
    }
    try_next();
  }
}

void JoinMember::table_arrived() { finish({}); }

void JoinMember::finish(const Status& outcome) {
  if (!outcome_) return;
  loop_.cancel(timer_);
  loop_.cancel(pause_timer_);
  if (root_ != nullptr) channels_.close(*std::exchange(root_, nullptr));
  std::exchange(outcome_, nullptr)(outcome);
}

std::string JoinMember::waiting_text() const {
  const std::string rank = "rank " + std::to_string(plan_.rank);
  const std::string after = " within " + seconds_text(plan_.deadline);
  if (assigned_) return rank + " has joined, but the ranks could not all reach each other" + after;
  if (introduced_) return rank + " has joined, but the job was not complete" + after + ": rank 0 knows who is missing";
  return rank + " could not reach rank 0" + after + " (last: " + last_failure_ +
         "): is rank 0 running, and is its address reachable from here?";
}

}  // namespace sluice
