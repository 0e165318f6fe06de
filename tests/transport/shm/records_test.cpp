// Records and what they say of rings, against arithmetic that can't overflow.
#include "transport/shm/records.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace sluice {

TEST(ShmRecords, ComeBackFromTheirBytes) {
  Rng rng(3);
  for (int i = 0; i < 1000; ++i) {
    const Record record{
        .kind = static_cast<RecordKind>(rng.below(3)),
        .flow = {rng.next(), static_cast<std::uint8_t>(rng.next()), static_cast<std::uint8_t>(rng.next())},
        .shape = {static_cast<std::uint32_t>(rng.next()), static_cast<std::uint32_t>(rng.next())},
        .offset = rng.next(),
        .arena = {rng.next(), rng.next()},
        .arena_bytes = rng.next(),
        .rank = static_cast<std::int32_t>(rng.next()),
        .ranks = static_cast<std::int32_t>(rng.next())};
    EXPECT_EQ(*decode_record(encode(record)), record);
  }
}

TEST(ShmRecords, PlaceEveryRingInsideTheArenaOrAreRefused) {
  Rng rng(4);
  int inside = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t arena = 4096 * (1 + rng.below(64));
    const Record record{
        .kind = RecordKind::open_flow,
        .shape = {static_cast<std::uint32_t>(rng.below(6)), static_cast<std::uint32_t>(64 * rng.below(64))},
        .offset = rng.chance(0.1) ? rng.next() : rng.below(300'000)};
    const bool good = record.shape.slots > 0 && record.shape.slot_bytes > 0 && record.offset % 64 == 0 &&
                      record.offset >= kArenaHeadBytes && record.offset < (1 << 30) &&
                      record.offset + ring_bytes(record.shape) <= arena;
    EXPECT_EQ(check_ring_place(record, arena).ok(), good);
    inside += good ? 1 : 0;
  }
  EXPECT_GT(inside, 20);
}

}  // namespace sluice
