// A few ranks over one transport, in this process: what the conformance suite and other tests run on.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/unique_fd.h"
#include "transport/transport.h"

namespace sluice::test {

class World {
 public:
  virtual ~World() = default;
  virtual int ranks() const = 0;
  virtual Transport& transport(Rank rank) = 0;
  virtual bool real_time() const = 0;  // ranks may be threads and really sleep
  virtual void let_time_pass() = 0;    // a little
  virtual void drop(Rank rank) = 0;    // the rank is gone, as when its process ends

  // progress() of every rank that is there, again and again. False: `done` was still false after a generous while.
  bool until(const std::function<bool()>& done);
  // For long enough that whatever can move has moved.
  void settle();

 protected:
  virtual bool there(Rank rank) const = 0;
};

struct WorldKind {
  std::string name;
  std::function<std::unique_ptr<World>(int ranks)> make;
};
inline void PrintTo(const WorldKind& kind, std::ostream* out) { *out << kind.name; }

// Every transport: a new one is one line here.
const std::vector<WorldKind>& world_kinds();

std::unique_ptr<World> make_loop_world(int ranks);
std::unique_ptr<World> make_shm_world(int ranks);
std::unique_ptr<World> make_tcp_world(int ranks);

// Defaults, but for Setting::arena_bytes.
Config with_arena(std::string bytes);

// Two ends of a connected stream.
struct StreamPair {
  UniqueFd a;
  UniqueFd b;
};
StreamPair unix_pair();
StreamPair tcp_pair();  // over 127.0.0.1

// Notes who was asked for, and does nothing: the test adopts by hand.
class SilentDialer final : public Dialer {
 public:
  void want_link(LinkId id, LinkClass) override { wanted.push_back(id.peer); }
  std::vector<Rank> wanted;
};

}  // namespace sluice::test
