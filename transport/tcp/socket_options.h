// What a link asks of its socket, and what it sees of it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace sluice {

// Marks what leaves: IP's DSCP for the network, SO_PRIORITY for this host's queues.
//
//   lane      DSCP                                   SO_PRIORITY
//   control   CS6 (48), network control              7, or 6 without CAP_NET_ADMIN
//   urgent    AF41 (34), interactive                 6
//   normal    DF (0), best effort                    0
//   bulk      LE (1), lower effort: RFC 8622         2
//
// A stream that is no TCP socket has neither; then this does nothing.
void mark_lane(int fd, std::uint8_t lane);
std::uint8_t dscp_of_lane(std::uint8_t lane);

// The kernel is to hold about so many bytes at most, sent or not, until the peer acknowledged them: it refuses more, but not within a call,
// so whoever sends counts too (bytes_in_kernel).
void bound_in_flight(int fd, std::size_t bytes);
// As before it, and the kernel finds its own size again (Linux from 5.14 on; before, it keeps a large one).
void leave_in_flight_to_the_kernel(int fd);
// Is there room now? If not, the poller tells when a quarter of a bound is free.
bool ask_for_room(int fd);

struct LinkSight {
  std::size_t in_kernel = 0;       // bytes not yet acknowledged, sent or not
  std::uint64_t acknowledged = 0;  // bytes, since the connection was made
  Nanoseconds round_trip{0};       // the least seen lately
  Nanoseconds now_round_trip{0};   // of late, with the queues on the way
};
LinkSight look_at(int fd);
std::size_t bytes_in_kernel(int fd);

}  // namespace sluice
