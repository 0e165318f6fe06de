// Two machines, made of network namespaces with a router between them, that stops forwarding: packets vanish, as when a cable
// is pulled further off. Needs root, ip and nsenter.
#include <fcntl.h>
#include <sched.h>

#include <cstdlib>

#include "tests/comm/bootstrap/rank_processes.h"

namespace sluice::test {
namespace {

// A network namespace, held by a process of its own.
class Machine {
 public:
  Machine()
      : holder_([](int stream) {
          if (::unshare(CLONE_NEWNET) != 0) return 1;
          tell(stream, std::to_string(::getpid()));
          char command = 0;
          return ::read(stream, &command, 1) < 0 ? 1 : 0;
        }) {
    pid_ = holder_.line();
    run("ip link set lo up");
  }
  const std::string& pid() const { return pid_; }
  bool run(const std::string& command) const {
    const std::string whole = "nsenter -t " + pid_ + " -n sh -c '" + command + "' >/dev/null 2>&1";
    return !pid_.empty() && std::system(whole.c_str()) == 0;
  }
  void enter() const {
    const UniqueFd space(::open(("/proc/" + pid_ + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC));
    if (::setns(space.get(), CLONE_NEWNET) != 0) ::_exit(98);
  }

 private:
  Process holder_;
  std::string pid_;
};

struct Network {
  Machine a;
  Machine b;
  Machine router;
  bool made = connect(a, "1") && connect(b, "2") && router.run("echo 1 > /proc/sys/net/ipv4/ip_forward");

  bool connect(const Machine& machine, const std::string& net) const {
    const std::string subnet = "10.99." + net;
    return router.run("ip link add v" + net + " type veth peer name eth9 netns " + machine.pid()) &&
           router.run("ip addr add " + subnet + ".254/24 dev v" + net + " && ip link set v" + net + " up") &&
           machine.run("ip addr add " + subnet + ".1/24 dev eth9 && ip link set eth9 up && ip route add default via " +
                       subnet + ".254");
  }
  bool cut() const { return router.run("echo 0 > /proc/sys/net/ipv4/ip_forward"); }
};

// Ranks 0, 1, 4 on one machine, 2, 3, 5 on the other: the tree crosses twice.
const std::set<Rank> kOnA{0, 1, 4};
const std::set<Rank> kOnB{2, 3, 5};

RankProcesses ranks_on(const Network& network) {
  Rendezvous rendezvous = *to_rendezvous(*make_local_unique_id());
  rendezvous.addresses = {0x0a630101};  // 10.99.1.1
  rendezvous.port = 45'000;
  return RankProcesses(6, [&network, rendezvous](Rank rank) {
    (kOnA.contains(rank) ? network.a : network.b).enter();
    JoinPlan plan = plan_of(rank, 6, 20s, Config());
    plan.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
    return plan;
  });
}

class DeadNetwork : public testing::Test {
 protected:
  void SetUp() override {
    network = std::make_unique<Network>();
    if (!network->made)
      GTEST_SKIP() << "can't make network namespaces here: needs root, and the programs ip and nsenter";
  }
  std::unique_ptr<Network> network;
};

TEST_F(DeadNetwork, RanksOfAMachineThatVanishedAreAllKnownToBeLostWithinTwoSeconds) {
  RankProcesses job = ranks_on(*network);
  for (Rank from = 0; from < 6; ++from) job.expect_flood_from(from, {});
  const std::int64_t start = now_ns();
  ASSERT_TRUE(network->cut());
  const double cut_seconds = static_cast<double>(now_ns() - start) * 1e-9;
  const double a = job.expect_losses(kOnB, kOnA, start);
  const double b = job.expect_losses(kOnA, kOnB, start);
  std::printf("    known to all others after %.0f and %.0f ms (cutting took up to %.0f)\n", a * 1e3, b * 1e3,
              cut_seconds * 1e3);
  EXPECT_LT(std::max(a, b), 2.0 + cut_seconds);
  job.expect_flood_from(1, kOnB);
  job.expect_flood_from(5, kOnA);
}

TEST_F(DeadNetwork, AStoppedRankOnAnotherMachineIsNotLost) {
  RankProcesses job = ranks_on(*network);
  job.all[2].signal(SIGSTOP);
  job.expect_silence({}, 4s);
  job.all[2].signal(SIGCONT);
  job.expect_flood_from(5, {});
  job.leave_all({});
}

TEST_F(DeadNetwork, AKilledRankOnAnotherMachineIsLostAtOnce) {
  RankProcesses job = ranks_on(*network);
  const std::int64_t start = now_ns();
  job.all[2].signal(SIGKILL);
  EXPECT_LT(job.expect_losses({2}, start), 2.0);
  job.expect_flood_from(5, {2});
  job.leave_all({2});
}

}  // namespace
}  // namespace sluice::test
