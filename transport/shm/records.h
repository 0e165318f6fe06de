// What the two ends of a shared-memory link say to each other over their Unix stream: fixed records of 64 bytes, in the
// machine's byte order (both ends are one machine). The first is a greeting, with the descriptors of memory and bell.
// Pure, so that every record an enemy could send can be tried.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/types.h"
#include "transport/shm/arena.h"
#include "transport/slot_ring.h"
#include "transport/transport.h"

namespace sluice {

inline constexpr std::size_t kRecordBytes = 64;
using RecordBytes = std::array<std::byte, kRecordBytes>;

enum class RecordKind : std::uint8_t {
  greeting,            // rank, ranks, arena, arena_bytes
  open_flow,           // flow, shape, offset: a ring of the sender's arena that the receiver of this may read
  close_communicator,  // flow.communicator: the sender of this will not touch its rings again
};

struct Record {
  RecordKind kind = RecordKind::greeting;
  FlowId flow{};
  RingShape shape{0, 0};
  std::uint64_t offset = 0;
  ArenaName arena{};
  std::uint64_t arena_bytes = 0;
  std::int32_t rank = 0;
  std::int32_t ranks = 0;
  bool operator==(const Record&) const = default;
};

RecordBytes encode(const Record& record);
// Errors: refused (not a record of this version). The numbers in it are not checked yet.
Result<Record> decode_record(std::span<const std::byte, kRecordBytes> bytes);

// The ring that an open_flow record speaks of lies within an arena of `arena_bytes`, behind its head. Errors: refused.
Status check_ring_place(const Record& record, std::size_t arena_bytes);

}  // namespace sluice
