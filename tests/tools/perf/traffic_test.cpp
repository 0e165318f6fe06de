#include "tools/perf/traffic.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace sluice::tools {
namespace {

TEST(Traffic, GeneratedSharesGrowWithTheDistance) {
  const Traffic traffic = Traffic::generated(4, 2400, 4, 1);
  for (Rank from = 0; from < 4; ++from)
    for (int distance = 0; distance < 4; ++distance)
      EXPECT_EQ(traffic.count(from, (from + distance) % 4), static_cast<std::size_t>(100 * distance));
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(traffic.total_sent(rank), 600u);
    EXPECT_EQ(traffic.total_received(rank), 600u);
  }
}

TEST(Traffic, WithoutSpreadItIsUniform) {
  const Traffic traffic = Traffic::generated(5, 1000, 1, 0);
  for (Rank from = 0; from < 5; ++from)
    for (Rank to = 0; to < 5; ++to) EXPECT_EQ(traffic.count(from, to), 200u);
}

TEST(Traffic, OneRankSendsAllToItself) { EXPECT_EQ(Traffic::generated(1, 100, 4, 1).count(0, 0), 25u); }

TEST(Traffic, MatricesAreScaledAndCutToElements) {
  const auto matrix = parse_traffic_matrix("100 200 150\n 50 100 75\n\n300 150 200\n");
  ASSERT_TRUE(matrix.ok()) << matrix.error().text;
  const auto traffic = Traffic::from_matrix(*matrix, 2, 2, 8);
  ASSERT_TRUE(traffic.ok());
  EXPECT_EQ(traffic->count(0, 1), 50u);
  EXPECT_EQ(traffic->count(1, 0), 12u);
  EXPECT_EQ(traffic->largest_total(), 25u + 50u);
  EXPECT_FALSE(Traffic::from_matrix(*matrix, 1, 4, 8).ok());
}

TEST(Traffic, WrongMatricesAreRefusedWithTheRow) {
  for (const auto& [text, says] : {std::pair{"1 2\n3\n", "row 2"},
                                   {"1 x\n3 4\n", "'x'"},
                                   {"1 2\n", "square"},
                                   {"", "square"},
                                   {"1 -2\n3 4\n", "'-2'"}}) {
    const auto matrix = parse_traffic_matrix(text);
    ASSERT_FALSE(matrix.ok()) << text;
    EXPECT_NE(matrix.error().text.find(says), std::string::npos) << matrix.error().text;
  }
  EXPECT_FALSE(read_traffic_matrix("/nowhere/matrix.txt").ok());
}

TEST(Traffic, VariablesOfNcclTests) {
  ASSERT_EQ(read_traffic_settings()->spread, 1);
  ::setenv("NCCL_TESTS_ALLTOALLV_SPREAD", "0.25", 1);
  EXPECT_EQ(read_traffic_settings()->spread, 0.25);
  ::setenv("NCCL_TESTS_ALLTOALLV_SPREAD", "1.5", 1);
  EXPECT_EQ(read_traffic_settings().error().code, Code::invalid_argument);
  ::unsetenv("NCCL_TESTS_ALLTOALLV_SPREAD");
}

}  // namespace
}  // namespace sluice::tools
