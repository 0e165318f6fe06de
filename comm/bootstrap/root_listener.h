// Where rank 0 waits for the others: made with a unique id, or when rank 0 joins by an id that somebody else made.
//
// The ids of make_unique_id are kept here, in the one process-wide table of this room: the caller gets 128 bytes and nothing
// else (the form that every launcher and NCCL's interface share), yet the port in them must already be taken, so the
// listening socket has to live somewhere until rank 0 of that id joins. An entry that nobody takes is closed after
// kUnclaimedTime, at the next call; a process forked meanwhile closes its copy unless it is the one that joins as rank 0.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/result.h"
#include "comm/bootstrap/sockets.h"
#include "comm/bootstrap/unique_id.h"

namespace sluice {

inline constexpr Nanoseconds kUnclaimedTime = std::chrono::minutes(10);

// Listens at a free port of this host, as `config` says (interface, port_range), and keeps the listeners for
// take_root_listeners. Any thread. Errors: invalid_argument (settings), out_of_resource (ports), system.
Result<Rendezvous> open_rendezvous(const Config& config);

// The listeners of `rendezvous`: those kept, or opened now. Any thread. Errors: out_of_resource, system (somebody else listens
// for this id on this host already, or the address is not of this host).
Result<std::vector<Listener>> take_root_listeners(const Rendezvous& rendezvous);

// Closes those kept for `rendezvous`, if any.
void forget_root_listeners(const Rendezvous& rendezvous);

// What ranks of this host, which came by the Unix socket, listen on and tell: see address.h.
struct LocalAddress {
  std::uint32_t listen = kLoopbackAddress;
  std::uint32_t told = kLoopbackAddress;  // 0: the root fills in the address by which other hosts reach it
};
LocalAddress local_address_for(const Rendezvous& rendezvous);

}  // namespace sluice
