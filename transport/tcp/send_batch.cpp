#include "transport/tcp/send_batch.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace sluice {

void SendBatch::add(const Frame& frame, std::span<const std::byte> payload) {
  headers_[frames_] = encode(frame);
  parts_[count_++] = {headers_[frames_].data(), kFrameBytes};
  ++frames_;
  bytes_ += kFrameBytes + payload.size();
  if (!payload.empty())
    parts_[count_++] = {const_cast<std::byte*>(payload.data()), payload.size()};  // sendmsg only reads
}

Result<bool> SendBatch::send(int fd, std::size_t most) {
  while (!empty() && most != 0) {
    std::array<iovec, 2 * kFramesMax> now;
    std::size_t parts = 0;
    for (std::size_t left = most; first_ + parts < count_ && left != 0; left -= now[parts++].iov_len) {
      now[parts] = parts_[first_ + parts];
      now[parts].iov_len = std::min(now[parts].iov_len, left);
    }
    msghdr message{};
    message.msg_iov = now.data();
    message.msg_iovlen = parts;
    const ssize_t sent = ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      return Error{Code::peer_lost, std::string("the link broke while sending: ") + std::strerror(errno)};
    }
    most -= static_cast<std::size_t>(sent);
    for (auto left = static_cast<std::size_t>(sent); left != 0;) {
      iovec& part = parts_[first_];
      if (left < part.iov_len) {
        part.iov_base = static_cast<std::byte*>(part.iov_base) + left;
        part.iov_len -= left;
        break;
      }
      left -= part.iov_len;
      ++first_;
    }
  }
  if (empty()) clear();
  return true;
}

void SendBatch::own_rest() {
  if (empty()) return;
  std::vector<std::byte> rest;
  for (std::size_t i = first_; i < count_; ++i) {
    const auto* const begin = static_cast<const std::byte*>(parts_[i].iov_base);
    rest.insert(rest.end(), begin, begin + parts_[i].iov_len);
  }
  own_ = std::move(rest);
  first_ = 0;
  count_ = 1;
  parts_[0] = {own_.data(), own_.size()};
}

void SendBatch::clear() {
  frames_ = bytes_ = first_ = count_ = 0;
  own_.clear();
}

}  // namespace sluice
