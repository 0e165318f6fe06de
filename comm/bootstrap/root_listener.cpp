#include "comm/bootstrap/root_listener.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "comm/bootstrap/peer_info.h"
#include "comm/bootstrap/secrets.h"

namespace sluice {
namespace {

struct Kept {
  Secret secret;
  std::vector<Listener> listeners;
  Nanoseconds since;
  pid_t owner;
};

class Table {
 public:
  void keep(const Secret& secret, std::vector<Listener> listeners) {
    const std::lock_guard lock(mutex_);
    forget_old();
    kept_.push_back({secret, std::move(listeners), RealClock::instance().now(), ::getpid()});
  }
  // Empty when there is none.
  std::vector<Listener> take(const Secret& secret) {
    const std::lock_guard lock(mutex_);
    std::vector<Listener> found;
    const auto at = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& one) { return one.secret == secret; });
    if (at != kept_.end()) {
      found = std::move(at->listeners);
      kept_.erase(at);
    }
    forget_old();
    return found;
  }
  void forget_others_copies() {
    const std::lock_guard lock(mutex_);
    forget_old();
  }

 private:
  void forget_old() {
    const Nanoseconds now = RealClock::instance().now();
    std::erase_if(kept_, [&](const Kept& one) { return one.owner != ::getpid() || now - one.since > kUnclaimedTime; });
  }

  std::mutex mutex_;
  std::vector<Kept> kept_;  // GUARDED_BY(mutex_)
};

Table& table() {
  static Table instance;
  return instance;
}

bool loopback_only(const Rendezvous& rendezvous) {
  return std::all_of(rendezvous.addresses.begin(), rendezvous.addresses.end(), is_loopback);
}

// One address: only there. Several: everywhere, since any may be the one that a joiner reaches.
std::uint32_t listen_address(const Rendezvous& rendezvous) {
  if (loopback_only(rendezvous)) return kLoopbackAddress;
  return rendezvous.addresses.size() == 1 ? rendezvous.addresses.front() : kAnyAddress;
}

}  // namespace

Result<Rendezvous> open_rendezvous(const Config& config) {
  SLUICE_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, list_interfaces());
  SLUICE_TRY_ASSIGN(const PortRange ports, parse_port_range(config.text(Setting::port_range)));
  Rendezvous rendezvous;
  SLUICE_TRY(fill_random(rendezvous.secret));
  rendezvous.host_id = this_process().host_id;
  if (const std::string& wanted = config.text(Setting::interface); wanted.empty()) {
    rendezvous.addresses = root_addresses(interfaces);
  } else {
    SLUICE_TRY_ASSIGN(const std::uint32_t address, choose_address(wanted, interfaces));
    rendezvous.addresses = {address};
  }
  std::vector<Listener> listeners;
  SLUICE_TRY_ASSIGN(Listener tcp, listen_tcp(listen_address(rendezvous), ports));
  SLUICE_TRY_ASSIGN(Listener local, listen_unix(root_unix_name(rendezvous.secret)));
  rendezvous.port = tcp.at.port;
  listeners.push_back(std::move(tcp));
  listeners.push_back(std::move(local));
  table().keep(rendezvous.secret, std::move(listeners));
  return rendezvous;
}

Result<std::vector<Listener>> take_root_listeners(const Rendezvous& rendezvous) {
  std::vector<Listener> listeners = table().take(rendezvous.secret);
  if (!listeners.empty()) return listeners;
  auto local = listen_unix(root_unix_name(rendezvous.secret));
  if (!local.ok())
    return Error{local.error().code, "rank 0 can't listen for the others; is another rank 0 of this job running? (" +
                                         local.error().text + ")"};
  listeners.push_back(*std::move(local));
  if (rendezvous.addresses.empty()) return listeners;
  const PortRange ports{rendezvous.port, static_cast<std::uint16_t>(rendezvous.port + rendezvous.ports - 1)};
  SLUICE_TRY_ASSIGN(Listener tcp, listen_tcp(listen_address(rendezvous), ports));
  listeners.push_back(std::move(tcp));
  return listeners;
}

void forget_root_listeners(const Rendezvous& rendezvous) { table().take(rendezvous.secret); }

LocalAddress local_address_for(const Rendezvous& rendezvous) {
  table().forget_others_copies();
  if (loopback_only(rendezvous)) return {};
  return {kAnyAddress, 0};
}

}  // namespace sluice
