// Against a second, dumber allocator: an array with one entry per grain.
#include "transport/extent_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/rng.h"

namespace sluice {
namespace {

constexpr std::size_t kGrain = ExtentAllocator::kGrain;

struct Taken {
  std::size_t offset;
  std::size_t bytes;
};

std::size_t grains(std::size_t bytes) { return std::max<std::size_t>(1, (bytes + kGrain - 1) / kGrain); }

// Whether some place for `bytes` at `alignment` is free.
bool fits(const std::vector<bool>& used, std::size_t bytes, std::size_t alignment) {
  const std::size_t want = grains(bytes);
  const std::size_t step = std::max<std::size_t>(1, alignment / kGrain);
  for (std::size_t begin = 0; begin + want <= used.size(); begin += step)
    if (std::none_of(used.begin() + static_cast<long>(begin), used.begin() + static_cast<long>(begin + want),
                     [](bool u) { return u; }))
      return true;
  return false;
}

std::size_t free_parts(const std::vector<bool>& used) {
  std::size_t parts = 0;
  for (std::size_t i = 0; i < used.size(); ++i) parts += !used[i] && (i == 0 || used[i - 1]) ? 1 : 0;
  return parts;
}

}  // namespace

class ExtentAllocatorProperty : public testing::TestWithParam<std::uint64_t> {};  // seed
INSTANTIATE_TEST_SUITE_P(Seeds, ExtentAllocatorProperty, testing::Range<std::uint64_t>(0, 20));

TEST_P(ExtentAllocatorProperty, AgreesWithAnArrayOfGrains) {
  Rng rng(GetParam());
  const std::size_t total = kGrain * (1 + rng.below(500));
  ExtentAllocator allocator(total + rng.below(kGrain));
  std::vector<bool> used(total / kGrain, false);
  std::vector<Taken> taken;
  const auto set = [&](const Taken& part, bool value) {
    for (std::size_t i = 0; i < grains(part.bytes); ++i) {
      ASSERT_NE(used[part.offset / kGrain + i], value);
      used[part.offset / kGrain + i] = value;
    }
  };
  for (int step = 0; step < 2000; ++step) {
    if (rng.chance(0.55)) {
      const std::size_t bytes = rng.below(kGrain * (rng.chance(0.1) ? 200 : 12));
      const std::size_t alignment = std::size_t{1} << rng.below(11);
      const auto offset = allocator.allocate(bytes, alignment);
      ASSERT_EQ(offset.has_value(), fits(used, bytes, std::max(alignment, kGrain))) << "step " << step;
      if (!offset) continue;
      ASSERT_EQ(*offset % std::max(alignment, kGrain), 0u);
      ASSERT_LE(*offset + bytes, total);
      taken.push_back({*offset, bytes});
      set(taken.back(), true);
    } else if (!taken.empty()) {
      const std::size_t pick = rng.below(taken.size());
      ASSERT_EQ(allocator.free(taken[pick].offset), grains(taken[pick].bytes) * kGrain);
      set(taken[pick], false);
      taken[pick] = taken.back();
      taken.pop_back();
    }
    ASSERT_EQ(allocator.free_bytes(), kGrain * static_cast<std::size_t>(std::count(used.begin(), used.end(), false)));
    ASSERT_EQ(allocator.free_parts(), free_parts(used)) << "neighbours were not joined";
  }
  for (const Taken& part : taken) allocator.free(part.offset);
  EXPECT_EQ(allocator.free_bytes(), total);
  EXPECT_EQ(allocator.free_parts(), total == 0 ? 0u : 1u);
}

TEST(ExtentAllocator, TakesTheSmallestPartThatFits) {
  ExtentAllocator allocator(kGrain * 16);
  const std::size_t large = *allocator.allocate(kGrain * 8);
  ASSERT_TRUE(allocator.allocate(kGrain));
  const std::size_t small = *allocator.allocate(kGrain * 2);
  ASSERT_TRUE(allocator.allocate(kGrain * 5));
  allocator.free(large);
  allocator.free(small);
  EXPECT_EQ(allocator.allocate(kGrain * 2), small);
}

TEST(ExtentAllocatorDeathTest, EndsOnAnOffsetThatWasNotAllocated) {
  ExtentAllocator allocator(1024);
  EXPECT_DEATH(allocator.free(64), "not allocated");
}

}  // namespace sluice
