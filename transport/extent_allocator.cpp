#include "transport/extent_allocator.h"

#include "base/assert.h"

namespace sluice {

ExtentAllocator::ExtentAllocator(std::size_t bytes) {
  if (bytes >= kGrain) add_free(0, bytes / kGrain * kGrain);
}

std::optional<std::size_t> ExtentAllocator::allocate(std::size_t bytes, std::size_t alignment) {
  SLUICE_ASSERT(alignment != 0 && (alignment & (alignment - 1)) == 0, "alignment must be a power of two");
  if (alignment < kGrain) alignment = kGrain;
  if (bytes == 0) bytes = 1;
  if (bytes > free_bytes_) return std::nullopt;
  bytes = (bytes + kGrain - 1) / kGrain * kGrain;
  for (auto fit = by_bytes_.lower_bound({bytes, 0}); fit != by_bytes_.end(); ++fit) {
    const auto [part_bytes, part_offset] = *fit;
    const std::size_t offset = (part_offset + alignment - 1) & ~(alignment - 1);
    const std::size_t skipped = offset - part_offset;
    if (skipped > part_bytes || part_bytes - skipped < bytes) continue;
    take_free(free_.find(part_offset));
    if (skipped != 0) add_free(part_offset, skipped);
    if (part_bytes - skipped > bytes) add_free(offset + bytes, part_bytes - skipped - bytes);
    taken_.emplace(offset, bytes);
    return offset;
  }
  return std::nullopt;
}

std::size_t ExtentAllocator::free(std::size_t offset) {
  const auto taken = taken_.find(offset);
  SLUICE_ASSERT(taken != taken_.end(), "freed something that was not allocated");
  const std::size_t bytes = taken->second;
  taken_.erase(taken);

  std::size_t begin = offset;
  std::size_t end = offset + bytes;
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == end) {
    end += next->second;
    const auto joined = next++;
    take_free(joined);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      take_free(before);
    }
  }
  add_free(begin, end - begin);
  return bytes;
}

void ExtentAllocator::add_free(std::size_t offset, std::size_t bytes) {
  free_.emplace(offset, bytes);
  by_bytes_.emplace(bytes, offset);
  free_bytes_ += bytes;
}

void ExtentAllocator::take_free(std::map<std::size_t, std::size_t>::iterator part) {
  by_bytes_.erase({part->second, part->first});
  free_bytes_ -= part->second;
  free_.erase(part);
}

}  // namespace sluice
