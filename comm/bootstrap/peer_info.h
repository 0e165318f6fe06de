// What a rank tells about its process and host, and the bounds of a notice.
#pragma once

#include "comm/bootstrap/control.h"
#include "comm/bootstrap/sockets.h"

namespace sluice {

// Host, process and pid of the caller; address, port and unix_name are left empty. `process_id` is drawn once per
// process; `host_id` mixes the kernel's boot id with the network namespace, so containers that can't reach each other's
// abstract Unix sockets differ. Any thread.
PeerInfo this_process();

// Where `peer` is reached from a host with this id: its Unix socket on the same host, else address and port.
Endpoint endpoint_of(const PeerInfo& peer, std::uint64_t host_id);

// Are the ranks of this host that share the calling thread's cores more than these cores? A rank that was bound to cores of
// its own shares them with nobody.
bool is_crowded(const Control& control);

// Are there other ranks on this host, and ranks on others?
bool shares_network(const Control& control);

// Cuts text and payload to kNoticeTextMax and kNoticePayloadMax. A longer payload is our own mistake.
void bound(Notice& notice);

}  // namespace sluice
