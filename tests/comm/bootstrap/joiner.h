// Ranks that join in threads of their own, and streams to the root's port as a stranger, or whoever knows the secret, opens them.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstddef>

#include "comm/bootstrap/handshake.h"
#include "comm/bootstrap/root_listener.h"
#include "comm/bootstrap/sockets.h"
#include "tests/comm/bootstrap/job.h"

namespace sluice::test {

inline Config loopback_config() {
  Config config;
  EXPECT_TRUE(config.set(Setting::interface, "127.0.0.0/8", Origin::file).ok());
  return config;
}

// Joins one rank in a thread of its own.
struct Joiner {
  Joiner(const UniqueId& id, Rank rank, int ranks, Nanoseconds deadline = 20s) {
    thread = std::thread([this, id, rank, ranks, deadline] {
      const Config config = loopback_config();
      auto joined = Control::join({id, rank, ranks, deadline, &config});
      status = joined.status();
      if (joined.ok()) control = *std::move(joined);
    });
  }
  Status& outcome() {
    if (thread.joinable()) thread.join();
    return status;
  }
  ~Joiner() { outcome(); }
  std::thread thread;
  Status status;
  std::unique_ptr<Control> control;
};

inline void leave(std::initializer_list<Joiner*> joiners) {
  std::vector<std::thread> threads;
  for (Joiner* one : joiners)
    if (one->control) threads.emplace_back([one] { one->control->leave(); });
  for (std::thread& thread : threads) thread.join();
}

// A blocking stream to the root's TCP port, as an enemy opens it.
inline UniqueFd enemy_stream(const UniqueId& id) {
  const Rendezvous rendezvous = *to_rendezvous(id);
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(rendezvous.port);
  to.sin_addr.s_addr = htonl(rendezvous.addresses.front());
  timeval patience{5, 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return {};
  return fd;
}

// All that the other end says until it closes.
inline std::vector<std::byte> hear(const UniqueFd& fd) {
  std::vector<std::byte> all;
  std::byte buffer[4096];
  for (ssize_t got = 0; (got = ::recv(fd.get(), buffer, sizeof buffer, 0)) > 0;)
    all.insert(all.end(), buffer, buffer + got);
  return all;
}

// A stream that has proved the secret: what a broken or hostile member can do.
inline UniqueFd proved_stream(const UniqueId& id, const Hello& hello) {
  UniqueFd fd = enemy_stream(id);
  Handshake shake = Handshake::dialer(to_rendezvous(id)->secret, hello);
  while (fd && !shake.done()) {
    const Bytes out = shake.take_output();
    Bytes in(shake.wanted());
    if (::send(fd.get(), out.data(), out.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(out.size()) ||
        ::recv(fd.get(), in.data(), in.size(), MSG_WAITALL) != static_cast<ssize_t>(in.size()) || !shake.feed(in).ok())
      return {};
  }
  return fd;
}

}  // namespace sluice::test
