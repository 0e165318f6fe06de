#include "comm/tune/tuned_link.h"

#include <algorithm>
#include <map>

namespace sluice {
namespace {

bool hold_the_same(const Control& control, const std::vector<Rank>& members) {
  const PeerInfo& first = control.peer(members.front());
  return std::ranges::all_of(members, [&](Rank member) {
    const PeerInfo& peer = control.peer(member);
    return peer.host_id == first.host_id && peer.tuning == first.tuning;
  });
}

std::string held(const PeerInfo& peer) { return peer.tuning == 0 ? "none" : "another one"; }

}  // namespace

LinkKind link_kind(const Control& control, const std::vector<Rank>& members, bool shared_memory) {
  if (!shared_memory) return LinkKind::tcp;
  const std::uint64_t process = control.peer(members.front()).process_id;
  const bool one_process =
      std::ranges::all_of(members, [&](Rank member) { return control.peer(member).process_id == process; });
  return one_process ? LinkKind::threads : LinkKind::processes;
}

LinkModel tuned_link(const LinkModel& predicted, const MachineFile* file, const Control& control,
                     const std::vector<Rank>& members, bool shared_memory) {
  if (file == nullptr || members.size() < 2 || !hold_the_same(control, members)) return predicted;
  const std::optional<LinkMeasures>& measured = file->link(link_kind(control, members, shared_memory));
  if (!measured) return predicted;
  return with_measures(*measured);
}

LinkModel with_measures(const LinkMeasures& measures) {
  return {measures.latency_seconds, measures.bytes_per_second, measures.combine_bytes_per_second, &measures};
}

std::string tuning_difference(const Control& control) {
  std::map<std::uint64_t, Rank> first_of_host;
  for (Rank rank = 0; rank < control.ranks(); ++rank) {
    const PeerInfo& peer = control.peer(rank);
    const Rank first = first_of_host.emplace(peer.host_id, rank).first->second;
    if (control.peer(first).tuning == peer.tuning) continue;
    return "rank " + std::to_string(rank) + " (" + peer.host_name + ", process " + std::to_string(peer.pid) +
           ") differs from rank " + std::to_string(first) + " in its tuning file: it has " + held(peer) +
           "; communicators that hold both use predictions. Give all ranks of a host the same SLUICE_TUNING";
  }
  return {};
}

}  // namespace sluice
