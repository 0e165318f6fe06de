#include "comm/schedule/places.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice {
namespace {

// Where a place lies in a caller's memory, in the in-place form of NCCL: element-wise pointers are compared, in units of a chunk.
long address(const ScheduleShape& shape, Place place) {
  const long buffer = 1000L * place.rank;  // each rank's buffer for both
  const long block = static_cast<long>(place.rank) * shape.chunks;
  switch (shape.collective) {
    case Collective::reduce_scatter:
    case Collective::scatter:
      return buffer + place.chunk + (place.buffer == Buffer::output ? block : 0);  // out == in + rank * count
    case Collective::all_gather:
    case Collective::gather:
      return buffer + place.chunk + (place.buffer == Buffer::input ? block : 0);  // in == out + rank * count
    default: return buffer + place.chunk;                                         // in == out
  }
}

TEST(InPlaceName, IsSharedByExactlyThePlacesAtOneAddress) {
  for (const Collective collective : all_collectives()) {
    const ScheduleShape shape{collective, 4, 3, is_rooted(collective) ? 2 : 0, 0};
    std::map<long, Place> name_at;
    std::map<Place, long> address_of;
    for (Rank rank = 0; rank < shape.ranks; ++rank)
      for (const Buffer buffer : {Buffer::input, Buffer::output}) {
        if (!(buffer == Buffer::input ? shape.has_input(rank) : shape.has_output(rank))) continue;
        // A rank without the other buffer has nothing to share; its block of the root's larger one is not its own memory.
        const bool shares = shape.has_input(rank) && shape.has_output(rank);
        const int chunks = buffer == Buffer::input ? shape.input_chunks() : shape.output_chunks();
        for (int chunk = 0; chunk < chunks; ++chunk) {
          const Place place{rank, buffer, chunk};
          const Place named = in_place_name(shape, place);
          if (!shares) {
            EXPECT_EQ(named, place);
            continue;
          }
          const long at = address(shape, place);
          EXPECT_EQ(name_at.try_emplace(at, named).first->second, named) << name(collective) << " " << print(place);
          EXPECT_EQ(address_of.try_emplace(named, at).first->second, at) << name(collective) << " " << print(place);
        }
      }
  }
}

TEST(InPlaceName, OfScratchIsItself) {
  const ScheduleShape shape{Collective::all_reduce, 2, 1, 0, 3};
  EXPECT_EQ(in_place_name(shape, {1, Buffer::scratch, 2}), (Place{1, Buffer::scratch, 2}));
}

TEST(PartOf, IsTheChunkWithinItsBlock) {
  EXPECT_EQ(part_of({Collective::all_reduce, 2, 5, 0, 10}, {0, Buffer::scratch, 7}), 2);
  EXPECT_EQ(part_of({Collective::all_to_all, 3, 2, 0, 0}, {0, Buffer::input, 5}), 1);
}

}  // namespace
}  // namespace sluice
