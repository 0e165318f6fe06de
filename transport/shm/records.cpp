#include "transport/shm/records.h"

#include <cstring>
#include <string>

namespace sluice {
namespace {

constexpr std::uint32_t kMagic = 0x4d485331;  // changes with the layout of records, rings or arena heads

struct Wire {
  std::uint32_t magic;
  std::uint8_t kind;
  std::uint8_t lane;
  std::uint8_t channel;
  std::uint8_t zero;
  std::uint64_t communicator;
  std::uint64_t offset;
  std::uint32_t slots;
  std::uint32_t slot_bytes;
  std::uint64_t arena[2];
  std::uint64_t arena_bytes;
  std::int32_t rank;
  std::int32_t ranks;
};
static_assert(sizeof(Wire) == kRecordBytes);

}  // namespace

RecordBytes encode(const Record& record) {
  const Wire wire{kMagic,
                  static_cast<std::uint8_t>(record.kind),
                  record.flow.lane,
                  record.flow.channel,
                  0,
                  record.flow.communicator,
                  record.offset,
                  record.shape.slots,
                  record.shape.slot_bytes,
                  {record.arena[0], record.arena[1]},
                  record.arena_bytes,
                  record.rank,
                  record.ranks};
  RecordBytes bytes;
  std::memcpy(bytes.data(), &wire, sizeof wire);
  return bytes;
}

Result<Record> decode_record(std::span<const std::byte, kRecordBytes> bytes) {
  Wire wire;
  std::memcpy(&wire, bytes.data(), sizeof wire);
  if (wire.magic != kMagic) return Error{Code::refused, "a record that is not of this version of Sluice"};
  if (wire.kind > static_cast<std::uint8_t>(RecordKind::close_communicator) || wire.zero != 0)
    return Error{Code::refused, "a record of unknown kind " + std::to_string(wire.kind)};
  return Record{static_cast<RecordKind>(wire.kind),
                {wire.communicator, wire.lane, wire.channel},
                {wire.slots, wire.slot_bytes},
                wire.offset,
                {wire.arena[0], wire.arena[1]},
                wire.arena_bytes,
                wire.rank,
                wire.ranks};
}

Status check_ring_place(const Record& record, std::size_t arena_bytes) {
  if (Status shape = check_shape(record.shape); !shape.ok()) return {Code::refused, shape.text()};
  const std::size_t bytes = ring_bytes(record.shape);
  if (record.offset % kCacheLine != 0 || record.offset < kArenaHeadBytes || record.offset > arena_bytes ||
      bytes > arena_bytes - record.offset)
    return {Code::refused, "a ring of " + std::to_string(bytes) + " bytes at " + std::to_string(record.offset) +
                               " can't lie in an arena of " + std::to_string(arena_bytes) + " bytes"};
  return {};
}

}  // namespace sluice
