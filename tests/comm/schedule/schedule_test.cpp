#include "comm/schedule/schedule.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Collectives, AreFoundByTheirNames) {
  for (const Collective collective : all_collectives()) EXPECT_EQ(parse_collective(name(collective)), collective);
  EXPECT_EQ(parse_collective("allreduce"), std::nullopt);
  EXPECT_EQ(all_collectives().size(), static_cast<std::size_t>(kCollectives));
}

TEST(ScheduleShapes, SayWhoHasHowManyChunks) {
  const ScheduleShape scatter{Collective::scatter, 3, 2, 1, 0};
  EXPECT_EQ(scatter.input_chunks(), 6);
  EXPECT_EQ(scatter.output_chunks(), 2);
  EXPECT_TRUE(scatter.has_input(1));
  EXPECT_FALSE(scatter.has_input(0));
  EXPECT_TRUE(scatter.has_output(0));
  const ScheduleShape gather{Collective::gather, 3, 2, 1, 0};
  EXPECT_EQ(gather.input_chunks(), 2);
  EXPECT_EQ(gather.output_chunks(), 6);
  EXPECT_FALSE(gather.has_output(0));
}

}  // namespace
}  // namespace sluice
