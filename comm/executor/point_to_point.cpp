#include "comm/executor/point_to_point.h"

#include <algorithm>
#include <cstring>

#include "comm/executor/communicator_state.h"
#include "device/cpu/copy.h"

namespace sluice::detail {
namespace {

constexpr std::size_t kDescribeSendBytesMin = 8 << 10;  // a smaller one is copied, and the sender goes on
constexpr std::size_t kCopiedBytesMax = 32 << 10;       // in a slot: all slots together stay in a second-level cache

}  // namespace

void SendOperation::bind(const void* data, std::size_t count, DataType type, MessagePeer& to, std::uint32_t digest) {
  start(to, count, type, digest);
  data_ = static_cast<const std::byte*>(data);
  flow_ = to.out;
  described_until_ = 0;
}

Advance SendOperation::advance(int steps) {
  if (flow_ == nullptr) return Advance::blocked;  // until the communicator finds the receive
  const std::size_t enough = moved_ + kTurnBytes;
  for (; !begun_ || moved_ < bytes_; ++progress_) {
    if (flow_->room() == 0) return Advance::blocked;
    if (begun_)
      send_next();
    else
      send_first();
    if ((--steps == 0 || moved_ >= enough) && moved_ < bytes_) return Advance::moved;
  }
  return flow_->released() >= described_until_ ? Advance::done : Advance::blocked;
}

// Where the rest of the message lies for the receiver to read, if that pays.
std::uint64_t SendOperation::described_at(std::size_t bytes) const {
  const auto from = std::min<std::size_t>(kDescribeSendBytesMin, flow_->ring().shape().slot_bytes);
  return bytes < from ? SlotHeader::kNoWindow : flow_->window_offset(data_ + moved_, bytes);
}

void SendOperation::send_first() {
  const Preamble said = preamble();
  const bool fits = bytes_ <= flow_->ring().shape().slot_bytes - sizeof(said);
  const std::size_t with_it = fits && described_at(bytes_) == SlotHeader::kNoWindow ? bytes_ : 0;
  std::byte* slot = flow_->reserve(sizeof(said) + with_it);
  std::memcpy(slot, &said, sizeof(said));
  if (with_it != 0) copy_bytes(slot + sizeof(said), data_, with_it);
  flow_->commit({digest_, static_cast<std::uint32_t>(sizeof(said) + with_it), SlotHeader::kNoWindow});
  moved_ = with_it;
  begun_ = true;
}

void SendOperation::send_next() {
  std::size_t bytes = std::min<std::size_t>(bytes_ - moved_, flow_->ring().shape().slot_bytes);
  const std::uint64_t offset = described_at(bytes);
  if (offset == SlotHeader::kNoWindow) {
    bytes = std::min(bytes, kCopiedBytesMax);
    copy_bytes(flow_->reserve(bytes), data_ + moved_, bytes);
  }
  flow_->commit({digest_, static_cast<std::uint32_t>(bytes), offset});
  if (offset != SlotHeader::kNoWindow) described_until_ = flow_->committed();
  moved_ += bytes;
}

void ReceiveOperation::bind(void* data, std::size_t count, DataType type, MessagePeer& from, std::uint32_t digest) {
  start(from, count, type, digest);
  data_ = static_cast<std::byte*>(data);
  flow_ = from.in;
}

Advance ReceiveOperation::advance(int steps) {
  if (flow_ == nullptr) return Advance::blocked;
  const std::size_t enough = moved_ + kTurnBytes;
  for (; !begun_ || moved_ < bytes_; ++progress_) {
    if (!flow_->ready()) return Advance::blocked;
    if (!(begun_ ? take_next() : take_first())) return Advance::failed;
    flow_->release();
    if ((--steps == 0 || moved_ >= enough) && moved_ < bytes_) return Advance::moved;
  }
  return Advance::done;
}

bool ReceiveOperation::accepts(const Preamble& said) {
  const Preamble mine = preamble();
  if (said.count == mine.count && said.type == mine.type) return true;
  const auto words = [](const Preamble& one) {
    const std::string type = one.type < kDataTypes ? std::string(name(static_cast<DataType>(one.type))) : "?";
    return std::to_string(one.count) + " elements of " + type;
  };
  fault_ = "rank " + std::to_string(peer_->rank) + " sends " + words(said) + ", rank " +
           std::to_string(communicator().rank()) + " receives " + words(mine);
  return false;
}

bool ReceiveOperation::take_first() {
  const SlotHeader header = flow_->header();
  const std::byte* payload = flow_->payload(header);
  Preamble said;
  if (header.digest != digest_ || header.described() || header.bytes < sizeof(said) ||
      header.bytes > flow_->ring().shape().slot_bytes || payload == nullptr) {
    fault_ = "rank " + std::to_string(peer_->rank) + " sent something that is no message of send";
    return false;
  }
  std::memcpy(&said, payload, sizeof(said));
  if (!accepts(said)) return false;
  const std::size_t with_it = header.bytes - sizeof(said);
  if (with_it != 0 && with_it != bytes_) {
    fault_ = "rank " + std::to_string(peer_->rank) + " sent " + std::to_string(with_it) + " bytes where " +
             std::to_string(bytes_) + " were announced";
    return false;
  }
  if (with_it != 0) copy_bytes(data_, payload + sizeof(said), with_it);
  moved_ = with_it;
  begun_ = true;
  return true;
}

bool ReceiveOperation::take_next() {
  const SlotHeader header = flow_->header();
  const std::byte* payload = flow_->payload(header);
  if (header.digest != digest_ || payload == nullptr || header.bytes == 0 || header.bytes > bytes_ - moved_ ||
      header.bytes > flow_->ring().shape().slot_bytes) {
    fault_ = "rank " + std::to_string(peer_->rank) + " sent " + std::to_string(header.bytes) + " bytes where at most " +
             std::to_string(bytes_ - moved_) + " were left";
    return false;
  }
  if (bytes_ >= communicator().streams_from())
    stream_bytes(data_ + moved_, payload, header.bytes);
  else
    copy_bytes(data_ + moved_, payload, header.bytes);
  moved_ += header.bytes;
  return true;
}

}  // namespace sluice::detail
