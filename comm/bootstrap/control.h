// The control plane of one rank: joining, the table of peers, the control tree (liveness, notices), and links for transports.
//
//   Joining   log depth: every rank asks the root for its parent in a binary tree, the table of peers flows down the tree.
//   Liveness  a neighbour's death is seen at once, for its sockets close, and is flooded; a machine that no longer answers is
//             given up within 2 s. A rank that computes, or is stopped by SIGSTOP, is not dead: its kernel still answers for it.
//   Threads   one service thread per rank, which never runs user code and never waits for the engine. It sleeps while nothing
//             happens; between hosts it looks five times a second whether the neighbours' machines answer.
//   Security  everything that listens expects an enemy: a stranger gets no byte but a nonce, sizes are bounded before
//             they are believed, a handshake has a deadline. What is said afterwards is not encrypted.
//   Limits    IPv4. A stopped rank passes no notices on, so those behind it in the tree hear them when it continues.
//   Parts     channels.h (streams), handshake.h, control_tree.h, links.h, join_root.h and join_member.h, environment.h (launchers).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/result.h"
#include "base/types.h"
#include "comm/bootstrap/unique_id.h"
#include "transport/transport.h"

namespace sluice {

enum class NoticeKind : std::uint8_t {
  peer_lost,  // world_rank is gone; text says how it was noticed
  peer_left,  // world_rank said goodbye: what it sent before still counts, nothing more will come
  abort,      // communicator is broken; code and text say why
  arrival,    // world_rank is inside an operation of communicator; payload is its fingerprint
  shrink,     // payload: a proposal or decision about the survivors of communicator
};

struct Notice {
  NoticeKind kind = NoticeKind::abort;
  std::uint64_t communicator = 0;
  Rank world_rank = 0;  // whom it speaks of
  Code code = Code::aborted;
  std::string text;                // at most kNoticeTextMax bytes, cut when longer
  std::vector<std::byte> payload;  // at most kNoticePayloadMax bytes
};
inline constexpr std::size_t kNoticeTextMax = 1024;
inline constexpr std::size_t kNoticePayloadMax = 4096;

struct PeerInfo {
  std::string host_name;
  std::uint64_t host_id = 0;     // equal: the same kernel and network namespace, so a Unix socket reaches it
  std::uint64_t process_id = 0;  // random, one per process: equal: threads of one process
  std::uint32_t pid = 0;
  std::uint32_t address = 0;  // IPv4, host order, chosen for reachability
  std::uint16_t port = 0;
  std::string unix_name;     // abstract Unix socket
  std::uint64_t cores = 0;   // a digest of the cores that its joining thread may use
  std::uint64_t tuning = 0;  // digest of the measured times that it would choose by; 0: none
};

class Control : public Dialer {
 public:
  // Listens, and returns the id that the other ranks need. The rank that calls it must join as rank 0 of that id in this process.
  static Result<UniqueId> make_unique_id(const Config& config);

  struct Join {
    UniqueId id;
    Rank rank = 0;
    int ranks = 1;
    Nanoseconds deadline = std::chrono::seconds(60);
    const Config* config = nullptr;  // borrowed during the call
    std::uint64_t tuning = 0;        // told to all: PeerInfo::tuning
  };
  // Blocks until every rank has joined. Errors, the same at all who had reached the root: timeout (names the ranks that are
  // missing), invalid_argument (rank taken twice, different `ranks`, settings), peer_lost (a rank went away meanwhile). At one
  // rank alone: refused (wrong secret), out_of_resource, system.
  static Result<std::unique_ptr<Control>> join(const Join& join);
  // A job of one rank: no thread, no socket.
  static std::unique_ptr<Control> alone();

  virtual Rank rank() const = 0;
  virtual int ranks() const = 0;
  virtual const PeerInfo& peer(Rank world_rank) const = 0;

  // Called on the service thread for every notice of another rank and for every loss this rank noticed itself; must not block.
  // The first handler also gets what came before it. Setting it again, or to nullptr, returns only when no call is under way: not
  // from a handler, nor under a lock that a handler takes.
  virtual void on_notice(std::function<void(const Notice&)> handler) = 0;
  // Sends to all other ranks. Any thread, never blocks.
  virtual void flood(Notice notice) = 0;

  // Where streams go that peers opened or the Dialer asked for. One transport per link class; set before the first open. Borrowed
  // until it returns from being set to nullptr, or until leave().
  virtual void deliver_links_to(LinkClass link, Transport* transport) = 0;

  // Says goodbye so that leaving is not taken for dying (the others hear peer_left), and ends the thread. Waits at most a second
  // for those that were linked through this rank to find their new places. Destroying without it looks like dying.
  virtual void leave() = 0;
};

}  // namespace sluice
