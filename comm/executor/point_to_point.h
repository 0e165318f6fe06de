// send and receive: one flow per ordered pair, not a schedule, and no step of the communicator's sequence.
//
//   Wire     the first message begins with a preamble (count, type). Data that fits follows in the same slot, unless it lies in a window
//            and is worth reading there; else it goes in messages of up to slot_bytes, described or copied.
//   Self     a send to oneself and its receive meet in the communicator and are copied once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/executor/operation_queue.h"

namespace sluice::detail {

struct Preamble {
  std::uint64_t count = 0;
  std::uint64_t type = 0;
};

// What a communicator holds of one other rank, or of this one.
struct MessagePeer {
  Rank rank = -1;
  OutFlow* out = nullptr;  // nullptr: not opened yet, or this rank itself
  InFlow* in = nullptr;
  OperationQueue sends;
  OperationQueue receives;
};

class PointToPoint : public Operation {
 public:
  using Operation::Operation;
  virtual OperationQueue& queue() const = 0;
  std::size_t bytes() const { return bytes_; }
  Preamble preamble() const { return {count_, static_cast<std::uint64_t>(type_)}; }
  Rank waiting_for() const override { return peer_->rank; }
  std::uint64_t progress_mark() const override { return progress_; }
  std::uint64_t bytes_sent() const override { return 0; }
  std::uint64_t bytes_moved() const override { return moved_; }
  std::size_t slice() const override { return moved_ / kTurnBytes; }
  std::string fault_text() const override { return fault_; }

 protected:
  void start(MessagePeer& peer, std::size_t count, DataType type, std::uint32_t digest) {
    peer_ = &peer;
    count_ = count;
    type_ = type;
    bytes_ = count * element_bytes(type);
    moved_ = 0;
    begun_ = false;
    digest_ = digest;
  }
  MessagePeer* peer_ = nullptr;
  std::size_t count_ = 0;
  DataType type_ = DataType::float32;
  std::size_t bytes_ = 0;
  std::size_t moved_ = 0;  // bytes
  bool begun_ = false;     // the preamble went
  std::uint32_t digest_ = 0;
  std::uint64_t progress_ = 0;
  std::string fault_;
};

class SendOperation final : public PointToPoint {
 public:
  using PointToPoint::PointToPoint;
  void bind(const void* data, std::size_t count, DataType type, MessagePeer& to, std::uint32_t digest);
  OperationQueue& queue() const override { return peer_->sends; }
  void give_back() override { give_to_pool(this); }
  Advance advance(int steps) override;
  bool ripe() override {
    if (flow_ == nullptr) return false;
    return !begun_ || moved_ < bytes_ ? flow_->room() > 0 : flow_->released() >= described_until_;
  }
  std::uint64_t bytes_sent() const override { return moved_; }
  WaitReason waits_on() const override { return begun_ && moved_ == bytes_ ? WaitReason::reading : WaitReason::room; }
  const std::byte* data() const { return data_; }

 private:
  std::uint64_t described_at(std::size_t bytes) const;
  void send_first();
  void send_next();

  const std::byte* data_ = nullptr;
  OutFlow* flow_ = nullptr;  // nullptr: to oneself
  std::uint64_t described_until_ = 0;
};

class ReceiveOperation final : public PointToPoint {
 public:
  using PointToPoint::PointToPoint;
  void bind(void* data, std::size_t count, DataType type, MessagePeer& from, std::uint32_t digest);
  OperationQueue& queue() const override { return peer_->receives; }
  void give_back() override { give_to_pool(this); }
  Advance advance(int steps) override;
  bool ripe() override { return flow_ != nullptr && flow_->ready(); }
  WaitReason waits_on() const override { return WaitReason::message; }
  std::byte* data() const { return data_; }
  // Both ends must say the same; otherwise fault_text() says what they said.
  bool accepts(const Preamble& preamble);

 private:
  bool take_first();
  bool take_next();

  std::byte* data_ = nullptr;
  InFlow* flow_ = nullptr;
};

}  // namespace sluice::detail
