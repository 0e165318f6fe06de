// A layout: where the chunks of one rank's buffers lie, bound when an operation is posted.
//
//   Units    elements, never bytes. Offsets count from the start of the caller's buffer.
//   Cuts     a message of `count` elements is cut into parts at 64-byte borders where the count allows; parts
//            at the end may be shorter or empty.
//   v-forms  blocks with their own counts and offsets; only uneven() layouts look at them, the others compute.
#pragma once

#include <cstddef>
#include <span>

#include "comm/schedule/schedule.h"

namespace sluice {

struct Extent {
  std::size_t offset = 0;
  std::size_t count = 0;
  bool operator==(const Extent&) const = default;
};

// Part `part` of `parts` of `count` elements.
Extent cut(std::size_t count, int parts, int part, std::size_t element_bytes);

// Blocks of one buffer in a v-form. Empty spans: the buffer is one block of `single` elements.
struct BlockTable {
  std::span<const std::size_t> counts;
  std::span<const std::size_t> offsets;  // empty: one after another
};

class Layout {
 public:
  // `count`: elements of the message (all_reduce, broadcast, reduce) or of one block (the forms with blocks).
  static Layout even(const ScheduleShape& shape, std::size_t count, std::size_t element_bytes);
  // Copies nothing: the tables are borrowed as long as the layout is used.
  static Layout uneven(const ScheduleShape& shape, std::size_t element_bytes, BlockTable in, BlockTable out,
                       std::size_t single);

  // Scratch extents have offset 0: the executor places them.
  Extent of(Buffer buffer, int chunk) const;
  // The largest count of any chunk that this rank may touch.
  std::size_t chunk_count_max() const { return chunk_count_max_; }

 private:
  bool single_block(Buffer buffer) const;
  Extent even_of(Buffer buffer, int chunk) const;
  Extent block(Buffer buffer, int index) const;

  ScheduleShape shape_;
  std::size_t element_bytes_ = 1;
  std::size_t count_ = 0;
  bool even_ = true;
  bool whole_ = false;  // one block of `count_`, at every rank
  BlockTable in_;
  BlockTable out_;
  std::size_t chunk_count_max_ = 0;
};

}  // namespace sluice
