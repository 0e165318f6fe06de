#include "comm/bootstrap/peer_info.h"

#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "base/assert.h"
#include "base/rng.h"

namespace sluice {
namespace {

std::uint64_t hash(const std::string& text, std::uint64_t seed) {
  std::uint64_t result = seed;
  for (const char one : text) result = mix64(result ^ static_cast<unsigned char>(one));
  return result;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

// Where /proc is hidden both parts fall back to the host's name, so that equal hosts still look equal.
std::uint64_t host_id(const std::string& fallback) {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  if (boot.empty()) boot = fallback;
  struct stat space {};
  if (::stat("/proc/self/ns/net", &space) != 0) return hash(boot, 0);
  return hash(boot, mix64(space.st_ino) ^ space.st_dev);
}

std::uint64_t random_number() {
  std::uint64_t value = 0;
  if (::getrandom(&value, sizeof value, 0) == sizeof value) return value;
  return mix64(static_cast<std::uint64_t>(RealClock::instance().now().count())) ^
         static_cast<std::uint64_t>(::getpid());
}

// Empty where the system does not tell.
cpu_set_t cores_allowed() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_ZERO(&cores);
  return cores;
}

std::uint64_t digest_of(const cpu_set_t& cores) {
  std::uint64_t digest = 0;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &cores)) digest = mix64(digest ^ core);
  return digest;
}

}  // namespace

PeerInfo this_process() {
  // Drawn once: equal process ids are how threads of one process know each other. A forked child must draw its own.
  struct Drawn {
    pid_t pid;
    std::uint64_t id;
  };
  static const Drawn first{::getpid(), random_number()};
  PeerInfo info;
  info.host_name = host_name();
  info.host_id = host_id(info.host_name);
  info.cores = digest_of(cores_allowed());
  info.pid = static_cast<std::uint32_t>(::getpid());
  info.process_id = first.pid == ::getpid() ? first.id : mix64(first.id ^ static_cast<std::uint64_t>(::getpid()));
  return info;
}

bool is_crowded(const Control& control) {
  const PeerInfo& self = control.peer(control.rank());
  int here = 0;
  for (Rank rank = 0; rank < control.ranks(); ++rank)
    if (const PeerInfo& peer = control.peer(rank); peer.host_id == self.host_id && peer.cores == self.cores) ++here;
  const cpu_set_t cores = cores_allowed();
  return CPU_COUNT(&cores) != 0 && here > CPU_COUNT(&cores);
}

bool shares_network(const Control& control) {
  const std::uint64_t here = control.peer(control.rank()).host_id;
  int neighbours = 0;
  for (Rank rank = 0; rank < control.ranks(); ++rank)
    if (rank != control.rank() && control.peer(rank).host_id == here) ++neighbours;
  return neighbours > 0 && neighbours + 1 < control.ranks();
}

Endpoint endpoint_of(const PeerInfo& peer, std::uint64_t host_id) {
  if (peer.host_id == host_id) return {peer.unix_name, 0, 0};
  return {"", peer.address, peer.port};
}

void bound(Notice& notice) {
  SLUICE_ASSERT(notice.payload.size() <= kNoticePayloadMax, "a notice's payload is within kNoticePayloadMax");
  if (notice.text.size() > kNoticeTextMax) notice.text.resize(kNoticeTextMax);
}

}  // namespace sluice
