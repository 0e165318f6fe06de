#include "tools/perf/options.h"

#include <gtest/gtest.h>

namespace sluice::tools {
namespace {

Result<Options> parse(std::vector<std::string> arguments, std::string_view test = "all_reduce") {
  return parse_options(arguments, perf_test(test));
}

TEST(Options, DefaultsAreThoseOfNcclTests) {
  const auto options = parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->threads, 1);
  EXPECT_EQ(options->processes, 1);
  EXPECT_EQ(options->min_bytes, 33554432u);
  EXPECT_EQ(options->max_bytes, 33554432u);
  EXPECT_EQ(options->step_bytes, 1048576u);
  EXPECT_EQ(options->iterations, 20);
  EXPECT_EQ(options->warmup, 1);
  EXPECT_EQ(options->aggregate, 1);
  EXPECT_EQ(options->checks, 1);
  EXPECT_EQ(options->average, Average::mean);
  EXPECT_EQ(options->types, std::vector{DataType::float32});
  EXPECT_EQ(options->operations, std::vector{ReduceOp::sum});
  EXPECT_EQ(options->root, 0);
  EXPECT_TRUE(options->notes.empty());
}

TEST(Options, ShortAndLongFormsAndValuesGluedOn) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"-b", "8", "-e", "1.5M", "-f", "2", "-g", "4", "-t", "2", "-n", "5"},
                                             {"-b8", "-e1.5M", "-f2", "-g4", "-t2", "-n5"},
                                             {"--minbytes", "8", "--maxbytes", "1.5M", "--stepfactor", "2", "--ngpus",
                                              "4", "--nthreads=2", "--iters=5"}}) {
    const auto options = parse(arguments);
    ASSERT_TRUE(options.ok()) << options.error().text;
    EXPECT_EQ(options->min_bytes, 8u);
    EXPECT_EQ(options->max_bytes, 1572864u);
    EXPECT_EQ(options->step_factor, 2);
    EXPECT_EQ(options->processes, 4);
    EXPECT_EQ(options->threads, 2);
    EXPECT_EQ(options->iterations, 5);
  }
}

TEST(Options, WordsOfNcclTestsAndOfTheHouse) {
  EXPECT_EQ(parse({"-d", "half", "-o", "mulsum"})->types, std::vector{DataType::float16});
  EXPECT_EQ(parse({"-d", "float16", "-o", "premulsum"})->operations, std::vector{ReduceOp::premulsum});
  EXPECT_EQ(parse({"-d", "all", "-o", "all"})->types.size(), static_cast<std::size_t>(kDataTypes));
  EXPECT_EQ(parse({"-o", "all"})->operations.size(), static_cast<std::size_t>(kReduceOps));
  EXPECT_FALSE(parse({"-r", "all"}, "broadcast")->root.has_value());
  for (const DataType type : all_data_types()) EXPECT_EQ(parse({"-d", column_word(type)})->types, std::vector{type});
  for (const ReduceOp op : all_reduce_ops())
    EXPECT_EQ(parse({"-d", "int32", "-o", column_word(op)})->operations, std::vector{op});
}

struct Wrong {
  std::vector<std::string> arguments;
  std::string says;
};

TEST(Options, WhatCannotBeRightIsRefusedByName) {
  const Wrong wrong[] = {
      {{"--frobnicate"}, "--frobnicate"},
      {{"stray"}, "stray"},
      {{"-n"}, "--iters"},
      {{"-n", "-3"}, "-n is '-3'"},
      {{"-n", "many"}, "-n is 'many'"},
      {{"-b", "12Q"}, "-b is '12Q'"},
      {{"-b", "2M", "-e", "1M"}, "-b is '2M'"},
      {{"-i", "0"}, "-i is '0'"},
      {{"-f", "1"}, "-f is '1'"},
      {{"-g", "0"}, "-g is '0'"},
      {{"-t", "100000"}, "-t is '100000'"},
      {{"-d", "complex"}, "-d is 'complex'"},
      {{"-o", "xor"}, "-o is 'xor'"},
      {{"-a", "4"}, "-a is '4'"},
      {{"-z", "9"}, "-z is '9'"},
      {{"-R", "3"}, "-R is '3'"},
      {{"-u", "64"}, "-u is '64'"},
      {{"-I", "1", "-n", "3", "-K", "3"}, "-K is '3'"},
      {{"--order", "random"}, "--order is 'random'"},
      {{"--lane", "tp:fast"}, "priority is 'fast'"},
      {{"--gap", "soon"}, "--gap is 'soon'"},
      {{"--beside", "all_reduce"}, "--beside is 'all_reduce'"},
      {{"--beside", "shuffle:8M:bulk"}, "the operation is one of all_reduce"},
      {{"--beside", "all_reduce:0:bulk"}, "bytes above 0"},
      {{"--beside", "all_reduce:8M:bulk:slow"}, "priority is 'slow'"},
  };
  for (const Wrong& one : wrong) {
    const auto options = parse(one.arguments);
    ASSERT_FALSE(options.ok()) << one.says;
    EXPECT_EQ(options.error().code, Code::invalid_argument) << one.says;
    EXPECT_NE(options.error().text.find(one.says), std::string::npos) << options.error().text;
  }
}

TEST(Options, LanesOfWhatIsMeasuredAndOfWhatRunsBeside) {
  const auto options = parse({"--lane", "tp:urgent:2", "--beside", "all_reduce:64M:bulk", "--beside",
                              "alltoall:8K:dp:normal:3", "--gap", "5ms"});
  ASSERT_TRUE(options.ok()) << options.error().text;
  EXPECT_EQ(options->lane, (Lane{.name = "tp", .priority = Priority::urgent, .weight = 2}));
  ASSERT_EQ(options->beside.size(), 2U);
  EXPECT_EQ(options->beside[0].bytes, std::size_t{64} << 20);
  EXPECT_EQ(options->beside[0].lane, (Lane{.name = "bulk", .priority = Priority::bulk}));  // as its name says
  EXPECT_EQ(options->beside[1].lane, (Lane{.name = "dp", .priority = Priority::normal, .weight = 3}));
  EXPECT_EQ(options->gap, std::chrono::milliseconds(5));
  EXPECT_TRUE(options->per_iteration);
  EXPECT_FALSE(parse({})->competes());
}

TEST(Options, WhatNeedsAGpuIsUnsupportedAndNeverIgnored) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"-G", "1"}, {"-D", "1"}}) {
    const auto options = parse(arguments);
    ASSERT_FALSE(options.ok());
    EXPECT_EQ(options.error().code, Code::unsupported);
    EXPECT_NE(options.error().text.find(arguments[0]), std::string::npos);
  }
  EXPECT_TRUE(parse({"-G", "0", "-D", "0"}).ok());
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"-y", "1"}, {"-p", "1"}, {"-x", "2"}, {"-V", "32"}, {"-R", "1"}, {"-r", "1"}}) {
    const auto options = parse(arguments);
    ASSERT_TRUE(options.ok());
    ASSERT_EQ(options->notes.size(), 1u) << arguments[0];
    EXPECT_NE(options->notes[0].find(arguments[0]), std::string::npos);
  }
}

TEST(Options, PairsThatDoNotExist) {
  const auto named = parse({"-d", "float", "-o", "bxor"});
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().code, Code::unsupported);
  EXPECT_TRUE(parse({"-d", "float", "-o", "all"}).ok());  // skipped with a line in the table
  EXPECT_TRUE(parse({"-d", "float", "-o", "bxor"}, "all_gather").ok());
}

TEST(Options, AlgorithmsBelongToCollectives) {
  EXPECT_EQ(parse({"--algorithm", "ring"}, "sendrecv").error().code, Code::unsupported);
  EXPECT_EQ(parse({"--algorithm", "ring"})->algorithm, "ring");
}

TEST(Options, HelpListsEveryOption) {
  const auto options = parse({"--help"});
  ASSERT_TRUE(options.ok());
  EXPECT_TRUE(options->help);
  for (const char* one : {"--nthreads", "--minbytes", "--op", "--order-sensitive", "--sweep", "--unalign"})
    EXPECT_NE(options->help_text.find(one), std::string::npos) << one;
}

TEST(Options, SizesOfTheTable) {
  EXPECT_EQ(table_sizes(*parse({"-b", "0", "-e", "64", "-f", "4"}), 4), (std::vector<std::size_t>{0, 4, 16, 64}));
  EXPECT_EQ(table_sizes(*parse({"-b", "1K", "-e", "4K", "-i", "1K"}), 4),
            (std::vector<std::size_t>{1024, 2048, 3072, 4096}));
  EXPECT_EQ(table_sizes(*parse({"-b", "8"}), 4).front(), 8u);
  EXPECT_EQ(table_sizes(*parse({"-e", "1K"}), 4), std::vector<std::size_t>{1024});
}

}  // namespace
}  // namespace sluice::tools
