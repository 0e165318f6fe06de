// Extents, computed a second time in 128-bit arithmetic, for counts far beyond what memory holds: no buffer is allocated.
#include "comm/executor/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace sluice {
namespace {

__extension__ using Wide = unsigned __int128;  // not of ISO C++, but of both compilers

constexpr std::size_t kCounts[] = {0,
                                   1,
                                   5,
                                   63,
                                   64,
                                   65,
                                   1003,
                                   (std::size_t{1} << 31) - 1,
                                   (std::size_t{1} << 31) + 5,
                                   (std::size_t{1} << 33) + 17,
                                   (std::size_t{1} << 40) + 3};

TEST(Cut, CoversEveryElementOnceInOrder) {
  for (const std::size_t count : kCounts)
    for (const int parts : {1, 2, 3, 7, 8, 64, 257})
      for (const std::size_t bytes : {1U, 2U, 4U, 8U}) {
        Wide next = 0;
        for (int part = 0; part < parts; ++part) {
          const Extent extent = cut(count, parts, part, bytes);
          ASSERT_EQ(static_cast<Wide>(extent.offset), next) << count << " in " << parts << " part " << part;
          next += extent.count;
        }
        ASSERT_EQ(next, static_cast<Wide>(count));
      }
}

TEST(Cut, IsAt64ByteBordersWhereTheCountAllows) {
  for (int part = 0; part < 7; ++part) {
    EXPECT_EQ(cut(100'000, 7, part, 2).offset * 2 % 64, 0U);
    EXPECT_LE(cut(5, 7, part, 2).count, 1U) << "few elements are spread";
  }
}

TEST(Layout, BlocksLieWhereWideArithmeticPutsThem) {
  for (const std::size_t count : kCounts)
    for (const int ranks : {1, 3, 8})
      for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter, Collective::all_to_all}) {
        constexpr int kParts = 3;
        const ScheduleShape shape{collective, ranks, kParts, 0, 0};
        const Layout layout = Layout::even(shape, count, 4);
        const Buffer blocks = collective == Collective::reduce_scatter ? Buffer::input : Buffer::output;
        for (int rank = 0; rank < ranks; ++rank) {
          Wide next = static_cast<Wide>(count) * static_cast<Wide>(rank);
          for (int part = 0; part < kParts; ++part) {
            const Extent extent = layout.of(blocks, rank * kParts + part);
            ASSERT_EQ(static_cast<Wide>(extent.offset), next);
            next += extent.count;
          }
          ASSERT_EQ(next, static_cast<Wide>(count) * static_cast<Wide>(rank + 1));
        }
        EXPECT_GE(layout.chunk_count_max() * kParts, count);
      }
}

TEST(Layout, UnevenBlocksLieBehindOneAnotherOrAtTheirOffsets) {
  const std::vector<std::size_t> counts{(std::size_t{1} << 32) + 1, 0, 7, std::size_t{1} << 31};
  const std::vector<std::size_t> offsets{std::size_t{1} << 35, 3, 9, 100};
  const ScheduleShape shape{Collective::all_to_all, 4, 1, 0, 0};
  const Layout packed = Layout::uneven(shape, 8, {counts, {}}, {counts, offsets}, 0);
  for (int rank = 0; rank < 4; ++rank) {
    const auto i = static_cast<std::size_t>(rank);
    EXPECT_EQ(packed.of(Buffer::input, rank),
              (Extent{std::accumulate(counts.begin(), counts.begin() + rank, std::size_t{0}), counts[i]}));
    EXPECT_EQ(packed.of(Buffer::output, rank), (Extent{offsets[i], counts[i]}));
  }
  EXPECT_EQ(packed.chunk_count_max(), counts[0]);
}

TEST(LayoutBroken, TheCheckSeesThirtyTwoBitArithmetic) {
  const std::size_t count = (std::size_t{1} << 31) + 5;
  const auto narrow =
      static_cast<std::size_t>(static_cast<std::uint32_t>(count * 3));  // as 32-bit indices would have it
  EXPECT_NE(Layout::even({Collective::all_gather, 4, 1, 0, 0}, count, 4).of(Buffer::output, 3).offset, narrow);
}

}  // namespace
}  // namespace sluice
