// What the shared-memory transport holds of a peer. Of its own files alone.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "transport/shm/shm_transport.h"

namespace sluice {

struct ShmTransport::Out {
  OutFlow flow;
  RingShape shape;
  std::size_t offset = 0;  // of the ring, in our arena
};

struct ShmTransport::In {
  InFlow flow;
  RingShape shape;
};

struct ShmTransport::Link {
  Rank peer = 0;
  bool asked = false;  // the Dialer, or the peer's asked for us
  RecordStream stream;
  std::shared_ptr<Arena> arena;  // the peer's, from its greeting on; shared with other ranks of this process
  std::map<FlowId, Out> out;
  std::map<FlowId, In> in;
  std::map<FlowId, Record> announced;                          // by the peer, every one that we know of
  std::set<std::uint64_t> peer_closed;                         // communicators that the peer closed before us
  std::map<std::uint64_t, std::vector<std::size_t>> draining;  // rings of communicators that we closed before the peer
  bool lost = false;
  bool unsent = false;
};

}  // namespace sluice
