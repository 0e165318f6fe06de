// The descriptors against nccl-tests' table of factors, and against what a collective means.
#include "tools/perf/perf_test.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sluice::tools {
namespace {

PerfCase case_of(const PerfTest& test, int ranks, std::size_t bytes, const Traffic* traffic) {
  PerfCase one{.type = DataType::float32, .reduction = {}, .root = ranks - 1, .ranks = ranks, .bytes = bytes};
  one.count = test.count(bytes, 4, ranks);
  one.traffic = traffic;
  return one;
}

TEST(PerfTests, BandwidthFactorsAreThoseOfNcclTests) {
  struct Factor {
    double bytes;  // of 4 ranks with 4096 bytes asked for: what algbw counts
    double bus;    // of 4 ranks
  };
  const std::map<std::string, Factor> table{
      {"all_reduce", {4096, 1.5}}, {"all_gather", {4096, 0.75}}, {"reduce_scatter", {4096, 0.75}},
      {"broadcast", {4096, 1}},    {"reduce", {4096, 1}},        {"alltoall", {4096, 0.75}},
      {"gather", {4096, 0.75}},    {"scatter", {4096, 0.75}},    {"sendrecv", {4096, 1}},
  };
  for (const auto& [name, want] : table) {
    const PerfTest& test = perf_test(name);
    EXPECT_EQ(static_cast<double>(test.algorithm_bytes(case_of(test, 4, 4096, nullptr))), want.bytes) << name;
    EXPECT_DOUBLE_EQ(test.bus_factor(4), want.bus) << name;
  }
  // alltoallv: the largest total of a rank. Distances 0..3 of 6 parts: 4096 / 4 elements in all.
  const Traffic traffic = Traffic::generated(4, 4096, 4, 1);
  const PerfTest& test = perf_test("alltoallv");
  EXPECT_EQ(test.algorithm_bytes(case_of(test, 4, 4096, &traffic)), 4 * (0u + 170 + 341 + 512));
  EXPECT_DOUBLE_EQ(test.bus_factor(4), 0.75);
}

TEST(PerfTests, CountsThatDoNotDivideAreCutToWholeBlocks) {
  EXPECT_EQ(perf_test("all_reduce").count(10, 4, 3), 2u);
  EXPECT_EQ(perf_test("all_gather").count(100, 4, 3), 8u);
  EXPECT_EQ(perf_test("scatter").count(8, 8, 2), 0u);
}

// Every received element comes from somewhere inside a send buffer, and no element is said twice.
TEST(PerfTests, PiecesLieInsideTheExtents) {
  for (const PerfTest& test : all_perf_tests())
    for (const int ranks : {1, 2, 3, 7}) {
      const Traffic traffic = Traffic::generated(ranks, 1000, 4, 0.7);
      const PerfCase one = case_of(test, ranks, 1000, test.by_traffic ? &traffic : nullptr);
      for (Rank rank = 0; rank < ranks; ++rank) {
        std::vector<int> written(test.extents(one, rank).receive);
        for (const Piece& piece : test.pieces(one, rank)) {
          ASSERT_LE(piece.at + piece.count, written.size()) << test.name;
          EXPECT_LE(piece.source_at + piece.count, test.extents(one, piece.source.value_or(0)).send) << test.name;
          for (std::size_t i = 0; i < piece.count; ++i) ++written[piece.at + i];
        }
        const bool receives = !test.rooted || rank == one.root || test.name == "broadcast" || test.name == "scatter";
        for (const int times : written) EXPECT_EQ(times, receives ? 1 : 0) << test.name << " rank " << rank;
      }
    }
}

TEST(PerfTests, InPlaceFollowsNccl) {
  const PerfTest& gather = perf_test("all_gather");
  PerfCase one = case_of(gather, 4, 4096, nullptr);
  EXPECT_EQ(gather.extents(one, 3).send_at, 3 * one.count);
  EXPECT_EQ(gather.extents(one, 3).receive_at, 0u);
  const PerfTest& scatter = perf_test("reduce_scatter");
  EXPECT_EQ(scatter.extents(one, 2).receive_at, 2 * one.count);
}

}  // namespace
}  // namespace sluice::tools
