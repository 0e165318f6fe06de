// How the control tree mends: whom this rank should have as neighbours by what it knows, and what it does about a difference.
#include "comm/bootstrap/control_tree.h"

#include <algorithm>
#include <set>
#include <utility>

#include "comm/bootstrap/peer_info.h"

namespace sluice {

// Brings the links in line with what is known. Called after every change; does nothing when nothing is to be done.
void ControlTree::settle() {
  if (peers_.empty()) return;
  const std::optional<Rank> parent = shape_.parent(self_);
  if (dialing_ && dialing_ != parent) stop_dialing();
  // A leaver is content with the old parent, which lingers for it.
  if (parent && !linked(*parent) && !dialing_ && !(left_ && holds_upward_link())) reach_parent(*parent);
  if (parent && linked(*parent)) drop_stale_links(*parent);
  if (left_) return check_left();
  note_missing(parent);
  keep_vigil();
}

void ControlTree::reach_parent(Rank parent) {
  dialing_ = parent;
  // While a parent that leaves still holds this link there is no hurry, and this rank will most likely leave too.
  if (!holds_upward_link()) return dial_parent();
  dial_timer_ = loop_.after(kFarewellGrace, [this] { dial_parent(); });
}

bool ControlTree::holds_upward_link() const {
  return std::any_of(links_.begin(), links_.end(), [](const auto& link) { return link.second->dialed; });
}

void ControlTree::stop_dialing() {
  if (dial_ != nullptr) channels_.close(*std::exchange(dial_, nullptr));
  loop_.cancel(dial_timer_);
  dialing_.reset();
  dial_pause_ = Nanoseconds(0);
}

void ControlTree::dial_parent() {
  // No deadline of its own: a stopped parent is waited for, a dead one is found by the vigil.
  dial_ = &channels_.dial(endpoint(*dialing_), Purpose::tree, {*dialing_}, std::chrono::hours(24));
}

// Links to ranks above that are no longer the parent. The other end must not take it for a death. Whoever becomes the root keeps
// the link to the old one, which ends it when all others have come over: through it come the farewells of their subtrees.
void ControlTree::drop_stale_links(Rank parent) {
  for (auto link = links_.begin(); link != links_.end();) {
    Channel& channel = *link->second;
    if (!channel.dialed || link->first == parent) {
      ++link;
      continue;
    }
    channels_.send(channel, encode_bare(FrameType::detach));
    channels_.finish(channel, std::chrono::milliseconds(500));
    link = links_.erase(link);
  }
}

void ControlTree::note_missing(std::optional<Rank> parent) {
  std::vector<Rank> neighbours = shape_.children(self_);
  if (parent) neighbours.push_back(*parent);
  std::map<Rank, Nanoseconds> missing;
  for (const Rank rank : neighbours) {
    if (linked(rank)) continue;
    const auto before = missing_.find(rank);
    missing.emplace(rank, before == missing_.end() ? loop_.now() : before->second);
  }
  missing_ = std::move(missing);
}

void ControlTree::keep_vigil() {
  const bool across = std::any_of(links_.begin(), links_.end(),
                                  [&](const auto& link) { return endpoint(link.first).unix_name.empty(); });
  if (vigil_timer_ != 0 || (missing_.empty() && !across)) return;
  vigil_timer_ = loop_.after(missing_.empty() ? kVigilPeriod : kMissingPatience, [this] { vigil(); });
}

void ControlTree::vigil() {
  vigil_timer_ = 0;
  std::set<Rank> suspects;
  for (const auto& [rank, since] : missing_)
    if (loop_.now() - since >= kMissingPatience) suspects.insert(rank);
  for (const auto& [rank, link] : links_) {
    if (channels_.silence(*link).value_or(0) < kSilenceMs) continue;
    // Perhaps the whole machine is gone: ask for all its ranks at once.
    const std::uint64_t host = peers_[static_cast<std::size_t>(rank)].host_id;
    for (Rank other = 0; other < shape_.ranks(); ++other)
      if (shape_.present(other) && peers_[static_cast<std::size_t>(other)].host_id == host) suspects.insert(other);
  }
  if (!suspects.empty() && !prober_.busy()) {
    std::vector<Prober::Target> targets;
    for (const Rank rank : suspects) targets.push_back({rank, endpoint(rank)});
    prober_.probe(targets, [this](const std::vector<Prober::Answer>& answers) { judge(answers); });
  }
  keep_vigil();
}

// One answer of a machine, be it a refusal, shows that it is up: then silence of others there proves nothing.
void ControlTree::judge(const std::vector<Prober::Answer>& answers) {
  std::set<std::uint64_t> up;
  for (const Prober::Answer& one : answers)
    if (one.verdict != Verdict::silent) up.insert(peers_[static_cast<std::size_t>(one.rank)].host_id);
  for (const Prober::Answer& one : answers) {
    if (!shape_.present(one.rank)) continue;
    // Linked meanwhile, or all along: its stream tells better whether it lives.
    if (one.verdict == Verdict::gone && !linked(one.rank)) {
      lost(one.rank, "nothing listens at " + format(endpoint(one.rank)) + " any more");
    } else if (one.verdict == Verdict::silent && !up.contains(peers_[static_cast<std::size_t>(one.rank)].host_id) &&
               (!linked(one.rank) || channels_.silence(*links_.at(one.rank)).value_or(0) >= kSilenceMs)) {
      lost(one.rank,
           "its machine (" + format_address(peers_[static_cast<std::size_t>(one.rank)].address) + ") does not answer");
    }
  }
  settle();
}

Endpoint ControlTree::endpoint(Rank rank) const {
  return endpoint_of(peers_.empty() ? forming_parent_ : peers_[static_cast<std::size_t>(rank)], host_id_);
}

}  // namespace sluice
