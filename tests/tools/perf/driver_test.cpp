// Whole runs over the loop transport: what is right passes, and a collective that is broken on purpose fails, whichever
// element, rank or memory it spoils.
#include "tools/perf/driver.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace sluice::tools {
namespace {

struct Outcome {
  int code = 0;
  std::string text;
};

Outcome run(const PerfTest& test, std::vector<std::string> arguments, int ranks = 3) {
  const auto options = parse_options(arguments, test);
  EXPECT_TRUE(options.ok()) << options.error().text;
  auto runtimes = Runtime::loop(ranks, 1, {});
  EXPECT_TRUE(runtimes.ok());
  auto members = Ranks::create(*std::move(runtimes), std::nullopt);
  EXPECT_TRUE(members.ok());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> sink(std::tmpfile(), std::fclose);
  Outcome outcome;
  outcome.code = run_perf(test, *options, arguments, *members, sink.get());
  std::rewind(sink.get());
  for (int one = std::fgetc(sink.get()); one != EOF; one = std::fgetc(sink.get()))
    outcome.text += static_cast<char>(one);
  return outcome;
}

class EveryTest : public testing::TestWithParam<std::string_view> {};
INSTANTIATE_TEST_SUITE_P(Perf, EveryTest,
                         testing::Values("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",
                                         "alltoall", "alltoallv", "gather", "scatter", "sendrecv"),
                         [](const auto& one) { return std::string(one.param); });

TEST_P(EveryTest, PassesWithEveryTypeAndOperation) {
  const Outcome outcome =
      run(perf_test(GetParam()), {"-b", "0", "-e", "300", "-f", "7", "-d", "all", "-o", "all", "-r", "all", "-n", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("# Out of bounds values : 0 OK"), std::string::npos) << outcome.text;
}

TEST_P(EveryTest, PassesASweepWithUnalignedBuffers) {
  const Outcome outcome =
      run(perf_test(GetParam()), {"-e", "4K", "-d", "all", "-o", "all", "-r", "all", "--sweep", "60"}, 5);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("# Combinations checked : 60 wrong 0"), std::string::npos) << outcome.text;
}

TEST_P(EveryTest, RunsOnOneRank) {
  const Outcome outcome = run(perf_test(GetParam()), {"-b", "0", "-e", "64", "-f", "4", "-n", "2"}, 1);
  EXPECT_EQ(outcome.code, 0) << outcome.text;
}

TEST(Driver, OrderSensitiveInputsPassInBothOrders) {
  for (const char* order : {"fast", "canonical"})
    for (const char* name : {"all_reduce", "reduce_scatter", "reduce"}) {
      const Outcome outcome = run(perf_test(name),
                                  {"-e", "1000", "-b", "1000", "-d", "all", "-o", "all", "-n", "0", "--order-sensitive",
                                   "--order", order, "--algorithm", "all"},
                                  6);
      EXPECT_EQ(outcome.code, 0) << name << " " << order << "\n" << outcome.text;
    }
}

TEST(Driver, CountsEveryCombination) {
  const Outcome outcome = run(perf_test("all_reduce"), {"-b", "0", "-e", "64", "-f", "2", "-n", "0"});
  // 0 4 8 16 32 64, out of place and in place.
  EXPECT_NE(outcome.text.find("# Combinations checked : 12 wrong 0"), std::string::npos) << outcome.text;
}

TEST(Driver, SkipsPairsThatDoNotExistWithALine) {
  const Outcome outcome = run(perf_test("all_reduce"), {"-b", "8", "-e", "8", "-d", "half", "-o", "all", "-n", "0"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.text.find("# skipped: bxor on half"), std::string::npos) << outcome.text;
}

TEST(Driver, AnAlgorithmThatDoesNotExistIsRefused) {
  EXPECT_EQ(run(perf_test("all_reduce"), {"-b", "8", "-e", "8", "--algorithm", "magic"}).code, kExitUsage);
}

TEST(Driver, ARootThatDoesNotExistIsRefused) {
  EXPECT_EQ(run(perf_test("broadcast"), {"-b", "8", "-e", "8", "-r", "3"}).code, kExitUsage);
}

TEST(Driver, PerIterationColumnsAndAggregation) {
  const Outcome outcome =
      run(perf_test("all_gather"), {"-b", "1K", "-e", "1K", "-n", "4", "-m", "3", "-I", "1", "-S", "1"});
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_NE(outcome.text.find("i_p99"), std::string::npos);
}

// ---- broken on purpose: a descriptor whose calls spoil something

int breaking_rank = 0;

void post_short(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(
      call.communicator->all_reduce({call.send, call.receive, one.count - 1, one.type}, one.reduction, *call.options));
}

void post_without_waiting_for_the_sum(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  if (call.send != call.receive) std::memcpy(call.receive, call.send, one.count * element_bytes(one.type));
  works.push_back(call.communicator->barrier());
}

// The right all-reduce of inputs of which one rank changed a bit before it gave them.
void post_changed_input(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  if (call.communicator->rank() == breaking_rank) const_cast<std::byte*>(call.send)[one.count] ^= std::byte{4};
  works.push_back(
      call.communicator->all_reduce({call.send, call.receive, one.count, one.type}, one.reduction, *call.options));
}

void post_beyond_the_end(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  if (call.communicator->rank() == breaking_rank) call.receive[one.count * element_bytes(one.type)] = std::byte{0};
  works.push_back(
      call.communicator->all_reduce({call.send, call.receive, one.count, one.type}, one.reduction, *call.options));
}

void post_maximum(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(
      call.communicator->all_reduce({call.send, call.receive, one.count, one.type}, ReduceOp::max, *call.options));
}

class BrokenOnPurpose : public testing::TestWithParam<decltype(PerfTest::post)> {};
INSTANTIATE_TEST_SUITE_P(Calls, BrokenOnPurpose,
                         testing::Values(post_short, post_without_waiting_for_the_sum, post_changed_input,
                                         post_beyond_the_end, post_maximum));

TEST_P(BrokenOnPurpose, IsCountedAndFails) {
  PerfTest broken = perf_test("all_reduce");
  broken.post = GetParam();
  for (breaking_rank = 0; breaking_rank < 3; ++breaking_rank) {
    testing::internal::CaptureStderr();
    const Outcome outcome = run(broken, {"-b", "400", "-e", "400", "-n", "0"});
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(outcome.code, kExitWrong) << outcome.text;
    EXPECT_NE(outcome.text.find("FAILED"), std::string::npos) << outcome.text;
    EXPECT_NE(said.find("# wrong: AllReduce float sum"), std::string::npos) << said;
  }
}

// In fast order every summation order is right within the bound; asked for the canonical bits, another tree is wrong.
TEST(BrokenOnPurposeOrder, AnotherOrderThanTheCanonicalIsSeen) {
  PerfTest broken = perf_test("all_reduce");
  broken.post = [](const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
    CallOptions options = *call.options;
    options.order = Order::fast;
    options.algorithm = "ring";
    works.push_back(
        call.communicator->all_reduce({call.send, call.receive, one.count, one.type}, one.reduction, options));
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(run(broken, {"-b", "4K", "-e", "4K", "-n", "0", "--order-sensitive", "--order", "canonical"}, 7).code,
            kExitWrong);
  EXPECT_EQ(run(broken, {"-b", "4K", "-e", "4K", "-n", "0", "--order-sensitive", "--order", "fast"}, 7).code, 0);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace sluice::tools
