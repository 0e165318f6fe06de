#include "layers/data/sample_order.h"

#include <bit>

#include "base/assert.h"
#include "base/rng.h"

namespace sluice {

SampleOrder::SampleOrder(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch)
    : samples_(samples),
      key_(mix64(mix64(seed) + epoch)),
      half_bits_(static_cast<int>((std::bit_width(samples - 1) + 1) / 2)) {
  SLUICE_ASSERT(samples >= 1, "an epoch needs a sample");
}

std::uint64_t SampleOrder::shuffle(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::uint64_t next = left ^ (mix64(key_ ^ (right * 4 + round)) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

std::uint64_t SampleOrder::operator()(std::uint64_t i) const {
  SLUICE_DEBUG_ASSERT(i < samples_, "a sample's number must be below the epoch's size");
  do i = shuffle(i);
  while (i >= samples_);
  return i;
}

}  // namespace sluice
