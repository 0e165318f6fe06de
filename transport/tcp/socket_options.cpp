#include "transport/tcp/socket_options.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "transport/transport.h"

namespace sluice {
namespace {

struct Mark {
  std::uint8_t dscp;
  int priority;
};
constexpr std::array<Mark, kLanes> kMarks{{{48, 7}, {34, 6}, {0, 0}, {1, 2}}};
constexpr int kPriorityWithoutRights = 6;
constexpr int kLargeBuffer = 1 << 23;

void set(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

}  // namespace

std::uint8_t dscp_of_lane(std::uint8_t lane) { return kMarks.at(lane).dscp; }

void mark_lane(int fd, std::uint8_t lane) {
  const Mark& mark = kMarks.at(lane);
  set(fd, IPPROTO_IP, IP_TOS, mark.dscp << 2);
  set(fd, SOL_SOCKET, SO_PRIORITY, std::min(mark.priority, kPriorityWithoutRights));  // after IP_TOS, which sets it too
  set(fd, SOL_SOCKET, SO_PRIORITY, mark.priority);
}

// The kernel doubles what it is asked for, and counts its own structures in: about an eighth here.
void bound_in_flight(int fd, std::size_t bytes) {
  set(fd, SOL_SOCKET, SO_SNDBUF, static_cast<int>(bytes / 2 + bytes / 16));
}

std::size_t bytes_in_kernel(int fd) {
  int queued = 0;
  return ::ioctl(fd, SIOCOUTQ, &queued) == 0 ? static_cast<std::size_t>(std::max(queued, 0)) : 0;
}

void leave_in_flight_to_the_kernel(int fd) {
#ifndef SO_BUF_LOCK
#define SO_BUF_LOCK 72
#endif
  set(fd, SOL_SOCKET, SO_SNDBUF, kLargeBuffer);
  set(fd, SOL_SOCKET, SO_BUF_LOCK, 0);
}

bool ask_for_room(int fd) {
  pollfd polled{fd, POLLOUT, 0};
  return ::poll(&polled, 1, 0) > 0 && (polled.revents & POLLOUT) != 0;
}

LinkSight look_at(int fd) {
  LinkSight sight;
  sight.in_kernel = bytes_in_kernel(fd);
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return sight;
  sight.acknowledged = info.tcpi_bytes_acked;
  if (info.tcpi_min_rtt != ~0U) sight.round_trip = std::chrono::microseconds(info.tcpi_min_rtt);
  sight.now_round_trip = std::chrono::microseconds(info.tcpi_rtt);
  return sight;
}

}  // namespace sluice
