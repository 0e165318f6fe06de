#include "comm/schedule/places.h"

namespace sluice {

Place in_place_name(const ScheduleShape& shape, Place place) {
  if (place.buffer != Buffer::input || !shape.has_output(place.rank)) return place;
  const int block = place.rank * shape.chunks;  // first chunk of this rank's own block
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::all_to_all: return {place.rank, Buffer::output, place.chunk};
    case Collective::reduce_scatter:
    case Collective::scatter:
      if (place.chunk < block || place.chunk >= block + shape.chunks) return place;
      return {place.rank, Buffer::output, place.chunk - block};
    case Collective::all_gather:
    case Collective::gather: return {place.rank, Buffer::output, block + place.chunk};
  }
  return place;
}

int part_of(const ScheduleShape& shape, Place place) { return place.chunk % shape.chunks; }

}  // namespace sluice
