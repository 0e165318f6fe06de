#include "comm/executor/layout.h"

#include <algorithm>

#include "comm/schedule/places.h"

namespace sluice {
namespace {

constexpr std::size_t kCutBytes = 64;

std::size_t part_size(std::size_t count, int parts, std::size_t element_bytes) {
  const auto divisor = static_cast<std::size_t>(parts);
  const std::size_t size = count / divisor + (count % divisor != 0 ? 1 : 0);
  const std::size_t line = std::max<std::size_t>(1, kCutBytes / element_bytes);
  return size < line ? size : (size + line - 1) / line * line;
}

Extent offset_of(const BlockTable& table, int index) {
  const auto i = static_cast<std::size_t>(index);
  if (!table.offsets.empty()) return {table.offsets[i], table.counts[i]};
  std::size_t before = 0;
  for (std::size_t k = 0; k < i; ++k) before += table.counts[k];
  return {before, table.counts[i]};
}

bool is_whole(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::broadcast ||
         collective == Collective::reduce;
}

}  // namespace

Extent cut(std::size_t count, int parts, int part, std::size_t element_bytes) {
  const std::size_t size = part_size(count, parts, element_bytes);
  const std::size_t begin = std::min(count, size * static_cast<std::size_t>(part));
  return {begin, std::min(count - begin, size)};
}

Layout Layout::even(const ScheduleShape& shape, std::size_t count, std::size_t element_bytes) {
  Layout layout;
  layout.shape_ = shape;
  layout.element_bytes_ = element_bytes;
  layout.count_ = count;
  layout.chunk_count_max_ = cut(count, shape.chunks, 0, element_bytes).count;
  layout.whole_ = is_whole(shape.collective);
  return layout;
}

Layout Layout::uneven(const ScheduleShape& shape, std::size_t element_bytes, BlockTable in, BlockTable out,
                      std::size_t single) {
  Layout layout;
  layout.shape_ = shape;
  layout.element_bytes_ = element_bytes;
  layout.count_ = single;
  layout.even_ = false;
  layout.in_ = in;
  layout.out_ = out;
  std::size_t largest = single;
  for (const std::size_t count : in.counts) largest = std::max(largest, count);
  for (const std::size_t count : out.counts) largest = std::max(largest, count);
  layout.chunk_count_max_ = cut(largest, shape.chunks, 0, element_bytes).count;
  return layout;
}

// Does the buffer hold one block (this rank's), or one block per rank?
bool Layout::single_block(Buffer buffer) const {
  switch (shape_.collective) {
    case Collective::all_gather:
    case Collective::gather: return buffer == Buffer::input;
    case Collective::reduce_scatter:
    case Collective::scatter: return buffer == Buffer::output;
    default: return false;
  }
}

// On the path of every message: no division but by the number of chunks, if there are several. The size of a part is that of the
// first.
Extent Layout::even_of(Buffer buffer, int chunk) const {
  const int part = shape_.chunks == 1 ? 0 : chunk % shape_.chunks;
  const std::size_t begin = std::min(count_, chunk_count_max_ * static_cast<std::size_t>(part));
  const std::size_t count = std::min(count_ - begin, chunk_count_max_);
  if (whole_) return {begin, count};
  if (buffer == Buffer::scratch) return {0, count};
  if (single_block(buffer)) return {begin, count};
  const int block = shape_.chunks == 1 ? chunk : chunk / shape_.chunks;
  return {static_cast<std::size_t>(block) * count_ + begin, count};
}

Extent Layout::block(Buffer buffer, int index) const {
  const BlockTable& table = buffer == Buffer::input ? in_ : out_;
  return table.counts.empty() ? Extent{0, count_} : offset_of(table, index);
}

Extent Layout::of(Buffer buffer, int chunk) const {
  if (even_) return even_of(buffer, chunk);
  const int part = chunk % shape_.chunks;
  if (buffer == Buffer::scratch) {
    // Only the forms whose block counts all ranks know have scratch: chunk s is like block chunk s % (P*K).
    const BlockTable& table = in_.counts.empty() ? out_ : in_;
    const std::size_t count = offset_of(table, chunk / shape_.chunks % shape_.ranks).count;
    return {0, cut(count, shape_.chunks, part, element_bytes_).count};
  }
  const Extent whole_block = single_block(buffer) ? Extent{0, count_} : block(buffer, chunk / shape_.chunks);
  const Extent piece = cut(whole_block.count, shape_.chunks, part, element_bytes_);
  return {whole_block.offset + piece.offset, piece.count};
}

}  // namespace sluice
