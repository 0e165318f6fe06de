#include "transport/shm/record_stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <span>
#include <string>

namespace sluice {
namespace {

constexpr std::size_t kDescriptors = 2;
constexpr std::size_t kDescriptorsMax = 8;  // taken from the kernel to be closed, when a peer sends too many

union ControlBuffer {  // as CMSG_* wants it aligned
  cmsghdr align;
  char bytes[CMSG_SPACE(kDescriptorsMax * sizeof(int))];
};

// The descriptors that came with a message.
std::vector<UniqueFd> descriptors_of(msghdr& message) {
  std::vector<UniqueFd> found;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof fd);
      found.emplace_back(fd);
    }
  }
  return found;
}

}  // namespace

void RecordStream::greet(const Record& greeting, std::array<int, 2> descriptors) {
  push(greeting);
  descriptors_ = descriptors;
}

void RecordStream::push(const Record& record) {
  const RecordBytes bytes = encode(record);
  outgoing_.insert(outgoing_.end(), bytes.begin(), bytes.end());
}

Result<bool> RecordStream::flush() {
  bool took = false;
  while (waiting()) {
    iovec part{outgoing_.data() + sent_, outgoing_.size() - sent_};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ControlBuffer control{};
    if (descriptors_) {
      message.msg_control = control.bytes;
      message.msg_controllen = CMSG_SPACE(kDescriptors * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(kDescriptors * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors_->data(), kDescriptors * sizeof(int));
    }
    const ssize_t sent = ::sendmsg(stream_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return took;
      return Error{Code::peer_lost, std::string("the link broke while sending: ") + std::strerror(errno)};
    }
    took = true;
    descriptors_.reset();
    sent_ += static_cast<std::size_t>(sent);
  }
  outgoing_.clear();
  sent_ = 0;
  return took;
}

Result<std::optional<Record>> RecordStream::next() {
  while (end_ - begin_ < kRecordBytes) {
    SLUICE_TRY_ASSIGN(const bool more, receive());
    if (!more) return std::optional<Record>();
  }
  const std::span<const std::byte, kRecordBytes> bytes(incoming_.data() + begin_, kRecordBytes);
  begin_ += kRecordBytes;
  SLUICE_TRY_ASSIGN(const Record record, decode_record(bytes));
  if ((record.kind == RecordKind::greeting) == greeted_)
    return Error{Code::refused, greeted_ ? "a second greeting" : "a record before the greeting"};
  greeted_ = true;
  return std::optional<Record>(record);
}

// One read of whatever is there. False: nothing is.
Result<bool> RecordStream::receive() {
  std::memmove(incoming_.data(), incoming_.data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  iovec part{incoming_.data() + end_, incoming_.size() - end_};
  ControlBuffer control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t got = ::recvmsg(stream_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    if (errno != ECONNRESET) return Error{Code::peer_lost, std::string("the link broke: ") + std::strerror(errno)};
  }
  std::vector<UniqueFd> came = descriptors_of(message);  // also closes what is not wanted
  if (got <= 0) return Error{Code::peer_lost, "the peer closed the link: its process ended or it left"};
  if (!came.empty()) {
    if (greeted_ || received_[0] || came.size() != kDescriptors || (message.msg_flags & MSG_CTRUNC) != 0)
      return Error{Code::refused, "descriptors that do not belong to a greeting"};
    received_ = {std::move(came[0]), std::move(came[1])};
  }
  end_ += static_cast<std::size_t>(got);
  return true;
}

}  // namespace sluice
