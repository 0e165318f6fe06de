// Listening and connecting: IPv4 TCP, and abstract Unix sockets for ranks on one host. Everything is non-blocking and
// closed on exec.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "comm/bootstrap/address.h"

namespace sluice {

// Where a stream goes to. A Unix name, or else an address and port.
struct Endpoint {
  std::string unix_name;
  std::uint32_t address = 0;
  std::uint16_t port = 0;
};
std::string format(const Endpoint& endpoint);

struct Listener {
  UniqueFd fd;
  Endpoint at;
};

// The first port of the range that is free, or any. Errors: out_of_resource names the range when all are taken;
// system (address not of this host, descriptors).
Result<Listener> listen_tcp(std::uint32_t address, PortRange ports);
Result<Listener> listen_unix(const std::string& unix_name);

struct Accepted {
  UniqueFd fd;              // -1: none is waiting, or it went away again
  std::string from;         // for messages: address and port, or pid and uid
  bool other_user = false;  // a Unix stream of a process of another user
  bool out_of_descriptors = false;
};
Accepted accept_from(const Listener& listener);

// Begins to connect; the stream turns writable when it is connected or has failed. `error`: errno of what is known at once
// (then fd is empty); EAGAIN: the queue of a Unix socket is full, its owner lives.
struct Connecting {
  UniqueFd fd;
  int error = 0;
};
Connecting start_connecting(const Endpoint& to);
// After the stream turned writable: 0 or errno.
int connect_error(int fd);

// No delay; keepalive probes every second, so that a machine that is gone turns the stream silent and then broken.
void tune_tcp(int fd);
// Milliseconds since the peer's kernel last answered anything; nullopt: not TCP.
std::optional<std::uint32_t> silence_ms(int fd);

std::uint32_t local_address(int fd);  // 0: not TCP

}  // namespace sluice
