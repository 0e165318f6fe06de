// The fingerprints of a communicator's last operations, so that a rank that returned long ago can still be told that it disagreed.
//
//   Threads  one writes, any read; nobody waits. A reader gets each entry whole or not at all.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "comm/executor/fingerprint.h"

namespace sluice::detail {

class History {
 public:
  static constexpr std::size_t kEntries = 16;

  void note(const Fingerprint& print);
  // nullopt: never noted, or overwritten.
  std::optional<Fingerprint> find(std::uint64_t sequence) const;
  std::vector<Fingerprint> all() const;
  std::uint64_t last_sequence() const { return last_.load(std::memory_order_acquire); }

 private:
  struct Entry {
    std::atomic<std::uint64_t> version{0};  // odd while it is written
    std::array<std::atomic<std::uint64_t>, kFingerprintWords> words{};
  };
  static std::optional<Fingerprint> read(const Entry& entry);

  std::array<Entry, kEntries> entries_;  // by sequence
  std::atomic<std::uint64_t> last_{0};   // release: its entry is there
};

}  // namespace sluice::detail
