// What both sides of joining work with: the plan, the outcome, and this rank's own listeners.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/bootstrap/channels.h"
#include "comm/bootstrap/control.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {

// Where to join. Asked again before every round of attempts, since a file may be replaced. Errors: timeout: not known yet, ask
// again; anything else ends the join.
using RendezvousSource = std::function<Result<Rendezvous>()>;

struct JoinPlan {
  RendezvousSource source;
  bool source_changes = false;  // what it gives may be stale: a refusal is not final
  Rank rank = 0;
  int ranks = 1;
  Nanoseconds deadline = std::chrono::seconds(60);
  std::string interface;                                 // Setting::interface
  std::string port_range;                                // Setting::port_range
  Nanoseconds link_deadline = std::chrono::minutes(10);  // a link that is not made for so long fails
  PeerInfo self;                                         // this_process(); tests give other hosts
};

// A plan for this process, without its source, with the settings of `config`.
JoinPlan plan_of(Rank rank, int ranks, Nanoseconds deadline, const Config& config);

using JoinOutcome = std::function<void(Status)>;  // called once

// Opens this rank's own listeners (links, tree) and writes their names into `self`. `address` to listen on, `told` to tell.
// Errors: as listen_tcp and listen_unix.
Status open_own_listeners(Channels& channels, std::uint32_t address, std::uint32_t told, const std::string& port_range,
                          PeerInfo& self);

// "rank 3" or "ranks 3, 5-8": at most a screenful.
std::string list_ranks(const std::vector<Rank>& ranks);
std::string seconds_text(Nanoseconds time);  // "2.5 s"

}  // namespace sluice
