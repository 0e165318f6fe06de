#include "comm/bootstrap/sockets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace sluice {
namespace {

constexpr int kBacklog = 1024;  // the kernel cuts it to net.core.somaxconn

sockaddr_in inet_name(std::uint32_t address, std::uint16_t port) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(address);
  name.sin_port = htons(port);
  return name;
}

struct UnixName {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

// Abstract: a zero byte, then the text; no file, gone with the last descriptor.
UnixName abstract_name(const std::string& text) {
  UnixName result;
  result.name.sun_family = AF_UNIX;
  const std::size_t count = std::min(text.size(), sizeof(result.name.sun_path) - 1);
  std::memcpy(result.name.sun_path + 1, text.data(), count);
  result.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
  return result;
}

template <typename Name>
const sockaddr* generic(const Name& name) {
  return reinterpret_cast<const sockaddr*>(&name);
}

sockaddr_in name_of(int fd) {
  sockaddr_in name{};
  socklen_t bytes = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0 || name.sin_family != AF_INET) return {};
  return name;
}

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// 0, or errno.
int try_listen(int fd, const sockaddr* name, socklen_t bytes) {
  if (::bind(fd, name, bytes) != 0) return errno;
  return ::listen(fd, kBacklog) != 0 ? errno : 0;
}

std::string peer_text(int fd, bool& other_user) {
  ucred user{};
  socklen_t bytes = sizeof user;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &bytes) != 0) return "a process of this host";
  other_user = user.uid != ::geteuid();
  return "process " + std::to_string(user.pid) + " of user " + std::to_string(user.uid) + " on this host";
}

}  // namespace

std::string format(const Endpoint& endpoint) {
  return endpoint.unix_name.empty() ? format_endpoint(endpoint.address, endpoint.port) : "@" + endpoint.unix_name;
}

Result<Listener> listen_tcp(std::uint32_t address, PortRange ports) {
  for (std::uint32_t port = ports.first; port <= ports.last; ++port) {
    // A socket whose listen() failed stays bound, so each port gets a fresh one.
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return system_error("can't open a TCP socket", errno);
    set(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    const sockaddr_in name = inet_name(address, static_cast<std::uint16_t>(port));
    const int failed = try_listen(fd.get(), generic(name), sizeof name);
    if (failed == 0) {
      const std::uint16_t got = ntohs(name_of(fd.get()).sin_port);
      return Listener{std::move(fd), {"", address, got}};
    }
    if (failed != EADDRINUSE && failed != EACCES)
      return system_error("can't listen on " + format_endpoint(address, static_cast<std::uint16_t>(port)), failed);
  }
  return Error{Code::out_of_resource, "no port of " + std::to_string(ports.first) + "-" + std::to_string(ports.last) +
                                          " is free on " + format_address(address) +
                                          ": widen the range (SLUICE_PORT_RANGE) or end the programs that hold them"};
}

Result<Listener> listen_unix(const std::string& unix_name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("can't open a Unix socket", errno);
  const UnixName name = abstract_name(unix_name);
  if (const int failed = try_listen(fd.get(), generic(name.name), name.bytes); failed != 0)
    return system_error("can't listen on the abstract Unix socket @" + unix_name, failed);
  return Listener{std::move(fd), {unix_name, 0, 0}};
}

Accepted accept_from(const Listener& listener) {
  Accepted result;
  sockaddr_in from{};
  socklen_t bytes = sizeof from;
  const bool tcp = listener.at.unix_name.empty();
  result.fd.reset(::accept4(listener.fd.get(), tcp ? reinterpret_cast<sockaddr*>(&from) : nullptr,
                            tcp ? &bytes : nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!result.fd) {
    result.out_of_descriptors = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    return result;
  }
  if (tcp) {
    tune_tcp(result.fd.get());
    result.from = format_endpoint(ntohl(from.sin_addr.s_addr), ntohs(from.sin_port));
  } else {
    result.from = peer_text(result.fd.get(), result.other_user);
  }
  return result;
}

Connecting start_connecting(const Endpoint& to) {
  const bool tcp = to.unix_name.empty();
  Connecting result;
  result.fd.reset(::socket(tcp ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!result.fd) return {UniqueFd(), errno};
  if (tcp) {
    tune_tcp(result.fd.get());
    const sockaddr_in name = inet_name(to.address, to.port);
    result.error = ::connect(result.fd.get(), generic(name), sizeof name) != 0 ? errno : 0;
  } else {
    const UnixName name = abstract_name(to.unix_name);
    result.error = ::connect(result.fd.get(), generic(name.name), name.bytes) != 0 ? errno : 0;
  }
  if (result.error == EINPROGRESS) result.error = 0;
  if (result.error != 0) result.fd.reset();
  return result;
}

int connect_error(int fd) {
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ? errno : error;
}

void tune_tcp(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, 5);
}

std::optional<std::uint32_t> silence_ms(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return std::nullopt;
  return info.tcpi_last_ack_recv;
}

std::uint32_t local_address(int fd) { return ntohl(name_of(fd).sin_addr.s_addr); }

}  // namespace sluice
