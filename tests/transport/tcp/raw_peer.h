// A live TcpTransport against a peer that is only a socket.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "tests/conformance/worlds.h"
#include "transport/tcp/frame.h"
#include "transport/tcp/tcp_transport.h"

namespace sluice {

using namespace std::chrono_literals;

inline constexpr RingShape kShape{.slots = 4, .slot_bytes = 256};
inline constexpr FlowId kFlow{.communicator = 7, .lane = 0, .channel = 0};

inline Frame greeting_of(std::uint32_t rank, std::uint32_t ranks) {
  return {.kind = FrameKind::greeting, .rank = rank, .ranks = ranks};
}
inline Frame message_of(FlowId flow, std::uint64_t number, std::uint32_t bytes) {
  return {.kind = FrameKind::message, .flow = flow, .number = number, .digest = 5, .bytes = bytes};
}

// The other end of a link, as bytes.
class RawPeer {
 public:
  explicit RawPeer(UniqueFd stream) : stream_(std::move(stream)) {}
  ~RawPeer() {
    if (pusher_.joinable()) pusher_.join();
  }
  void send(const Frame& frame, std::size_t payload_bytes = 0) {
    const FrameBytes header = encode(frame);
    std::vector<std::byte> all(header.begin(), header.end());
    all.resize(kFrameBytes + payload_bytes, std::byte{0x42});
    send_bytes(all);
  }
  void send_bytes(const std::vector<std::byte>& bytes) {
    ASSERT_EQ(::send(stream_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // As much of it as the other side takes, meanwhile.
  void push(std::vector<std::byte> bytes) {
    pusher_ = std::thread([this, all = std::move(bytes)] {
      for (std::size_t at = 0; at < all.size();) {
        const ssize_t sent = ::send(stream_.get(), all.data() + at, all.size() - at, MSG_NOSIGNAL);
        if (sent < 0) return;
        at += static_cast<std::size_t>(sent);
      }
    });
  }
  // Frames that have come, payloads left out. What is not whole yet stays for the next call.
  std::vector<Frame> frames() {
    std::byte buffer[1 << 16];
    for (ssize_t got = 0; (got = ::recv(stream_.get(), buffer, sizeof buffer, MSG_DONTWAIT)) > 0;)
      read_.insert(read_.end(), buffer, buffer + got);
    std::vector<Frame> found;
    while (read_.size() >= kFrameBytes) {
      const Frame frame = *decode_frame(std::span<const std::byte, kFrameBytes>(read_.data(), kFrameBytes));
      const std::size_t bytes = kFrameBytes + (frame.kind == FrameKind::message ? frame.bytes : 0);
      if (read_.size() < bytes) break;
      read_.erase(read_.begin(), read_.begin() + static_cast<long>(bytes));
      found.push_back(frame);
    }
    return found;
  }
  void close() { stream_.reset(); }

 private:
  UniqueFd stream_;
  std::vector<std::byte> read_;
  std::thread pusher_;
};

// Rank 0 of 3 under test; rank 1 is raw, rank 2 a good one that must never be disturbed.
class TcpAlone : public testing::Test {
 protected:
  void SetUp() override {
    test::StreamPair to_raw = test::tcp_pair();
    transport_->adopt({1}, std::move(to_raw.a));
    raw_ = std::make_unique<RawPeer>(std::move(to_raw.b));
    test::StreamPair to_good = test::tcp_pair();
    transport_->adopt({2}, std::move(to_good.a));
    good_->adopt({0}, std::move(to_good.b));
  }
  template <typename Done>
  bool until(const Done& done) {
    for (const auto deadline = std::chrono::steady_clock::now() + 20s; std::chrono::steady_clock::now() < deadline;) {
      if (done()) return true;
      if (transport_->progress() + good_->progress() == 0) std::this_thread::sleep_for(50us);
    }
    return false;
  }
  std::vector<Frame> frames_until(std::size_t count) {
    std::vector<Frame> all;
    EXPECT_TRUE(until([&] {
      for (const Frame& frame : raw_->frames()) all.push_back(frame);
      return all.size() >= count;
    }));
    return all;
  }
  void expect_good_peer_undisturbed() {
    OutFlow& out = **transport_->open_out(2, kFlow, kShape);
    InFlow& in = **good_->open_in(0, kFlow, kShape);
    out.commit({.digest = 99, .bytes = 8});
    ASSERT_TRUE(until([&] { return in.ready(); }));
    EXPECT_EQ(in.header().digest, 99u);
    EXPECT_TRUE(transport_->peer_status(2).ok());
  }

  test::SilentDialer dialer_;
  std::unique_ptr<TcpTransport> transport_ = *TcpTransport::make(0, 3, test::with_arena("64M"), dialer_);
  std::unique_ptr<TcpTransport> good_ = *TcpTransport::make(2, 3, test::with_arena("64M"), dialer_);
  std::unique_ptr<RawPeer> raw_;
};

// Fills the flow, which the raw peer has opened or will.
inline void fill(OutFlow& out, std::uint32_t bytes) {
  while (out.room() > 0) out.commit({.digest = 1, .bytes = bytes});
}

}  // namespace sluice
