#include "tests/conformance/worlds.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/assert.h"
#include "transport/loop/loop_world.h"
#include "transport/shm/shm_transport.h"
#include "transport/tcp/tcp_transport.h"

namespace sluice::test {
namespace {

constexpr auto kPatience = std::chrono::seconds(30);

class LoopRanks final : public World {
 public:
  explicit LoopRanks(int ranks) : world_(ranks, {.seed = 20260}), there_(static_cast<std::size_t>(ranks), true) {}
  int ranks() const override { return world_.ranks(); }
  Transport& transport(Rank rank) override { return world_.transport(rank); }
  bool real_time() const override { return false; }
  void let_time_pass() override { world_.advance(std::chrono::milliseconds(1)); }
  void drop(Rank rank) override {
    there_[static_cast<std::size_t>(rank)] = false;
    world_.kill(rank);
  }

 protected:
  bool there(Rank rank) const override { return there_[static_cast<std::size_t>(rank)]; }

 private:
  LoopWorld world_;
  std::vector<bool> there_;
};

// Ranks that are connected by streams, made when first asked for.
class StreamRanks final : public World {
 public:
  using MakeTransport = std::function<std::unique_ptr<Transport>(Rank, int, Dialer&)>;

  StreamRanks(int ranks, StreamPair (*pair)(), const MakeTransport& make) : pair_(pair) {
    for (Rank rank = 0; rank < ranks; ++rank) dialers_.push_back(std::make_unique<PairDialer>(*this, rank));
    for (Rank rank = 0; rank < ranks; ++rank)
      transports_.push_back(make(rank, ranks, *dialers_[static_cast<std::size_t>(rank)]));
  }
  int ranks() const override { return static_cast<int>(transports_.size()); }
  Transport& transport(Rank rank) override { return *transports_[static_cast<std::size_t>(rank)]; }
  bool real_time() const override { return true; }
  void let_time_pass() override { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
  void drop(Rank rank) override { transports_[static_cast<std::size_t>(rank)].reset(); }

 protected:
  bool there(Rank rank) const override { return transports_[static_cast<std::size_t>(rank)] != nullptr; }

 private:
  class PairDialer final : public Dialer {
   public:
    PairDialer(StreamRanks& world, Rank rank) : world_(world), rank_(rank) {}
    void want_link(LinkId id, LinkClass) override { world_.connect(rank_, id); }

   private:
    StreamRanks& world_;
    Rank rank_;
  };

  void connect(Rank a, LinkId id) {
    const Rank b = id.peer;
    const std::lock_guard lock(mutex_);
    if (!connected_.insert({std::minmax(a, b), id.lane}).second) return;
    StreamPair pair = pair_();
    transport(a).adopt({b, id.lane}, std::move(pair.a));
    transport(b).adopt({a, id.lane}, std::move(pair.b));
  }

  StreamPair (*pair_)();
  std::mutex mutex_;
  std::set<std::pair<std::pair<Rank, Rank>, std::uint8_t>> connected_;
  std::vector<std::unique_ptr<PairDialer>> dialers_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

}  // namespace

bool World::until(const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int idle = 0;;) {
    if (done()) return true;
    std::size_t moved = 0;
    for (Rank rank = 0; rank < ranks(); ++rank)
      if (there(rank)) moved += transport(rank).progress();
    if (moved != 0) continue;
    let_time_pass();
    if (++idle % 64 == 0 && std::chrono::steady_clock::now() > deadline) return false;
  }
}

void World::settle() {
  for (int quiet = 0; quiet < 400; ++quiet) {
    for (Rank rank = 0; rank < ranks(); ++rank)
      if (there(rank) && transport(rank).progress() != 0) quiet = 0;
    if (quiet % 8 == 0) let_time_pass();
  }
}

const std::vector<WorldKind>& world_kinds() {
  static const std::vector<WorldKind> kinds{
      {"loop", make_loop_world},
      {"shm", make_shm_world},
      {"tcp", make_tcp_world},
  };
  return kinds;
}

std::unique_ptr<World> make_loop_world(int ranks) { return std::make_unique<LoopRanks>(ranks); }

std::unique_ptr<World> make_shm_world(int ranks) {
  return std::make_unique<StreamRanks>(ranks, unix_pair,
                                       [](Rank rank, int of, Dialer& dialer) -> std::unique_ptr<Transport> {
                                         return *ShmTransport::make(rank, of, with_arena("64M"), dialer);
                                       });
}

std::unique_ptr<World> make_tcp_world(int ranks) {
  return std::make_unique<StreamRanks>(ranks, tcp_pair,
                                       [](Rank rank, int of, Dialer& dialer) -> std::unique_ptr<Transport> {
                                         return *TcpTransport::make(rank, of, with_arena("64M"), dialer);
                                       });
}

Config with_arena(std::string bytes) {
  Config config;
  const Status set = config.set(Setting::arena_bytes, std::move(bytes), Origin::file);
  SLUICE_ASSERT(set.ok(), "a size");
  return config;
}

StreamPair unix_pair() {
  int fds[2] = {-1, -1};
  SLUICE_ASSERT(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0, "socketpair");
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

StreamPair tcp_pair() {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  SLUICE_ASSERT(::bind(listener.get(), generic, length) == 0 && ::listen(listener.get(), 1) == 0,
                "listening on 127.0.0.1");
  SLUICE_ASSERT(::getsockname(listener.get(), generic, &length) == 0, "getsockname");
  StreamPair pair;
  pair.a.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SLUICE_ASSERT(::connect(pair.a.get(), generic, length) == 0, "connecting to 127.0.0.1");
  pair.b.reset(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  SLUICE_ASSERT(static_cast<bool>(pair.b), "accept");
  return pair;
}

}  // namespace sluice::test
