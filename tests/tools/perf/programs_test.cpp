// The benchmark programs as a user starts them: processes, threads, every transport, variables, exit codes, JSON.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/tools/run_program.h"
#include "tools/perf/driver.h"

namespace sluice::tools {
namespace {

using test::run_program;

struct Way {
  const char* variables;
  const char* ranks;
};

class Ways : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Programs, Ways,
                         testing::Values(Way{"SLUICE_TRANSPORT=shm", "-g 3"}, Way{"SLUICE_TRANSPORT=shm", "-t 3"},
                                         Way{"SLUICE_TRANSPORT=tcp", "-g 3"}, Way{"SLUICE_TRANSPORT=loop", "-g 3"},
                                         Way{"", "-g 2 -t 2"}));

TEST_P(Ways, EveryProgramIsRight) {
  for (const PerfTest& test : all_perf_tests()) {
    const std::string command =
        std::string(test.name) + "_perf -b 0 -e 2K -f 8 -n 2 -r 1 " + GetParam().ranks + " 2>&1";
    const auto result = run_program(command, GetParam().variables);
    EXPECT_EQ(result.code, 0) << GetParam().variables << " " << command << "\n" << result.text;
    EXPECT_NE(result.text.find("# Out of bounds values : 0 OK"), std::string::npos) << result.text;
  }
}

TEST(Programs, WindowsAndAggregationAndUnalignedBuffers) {
  for (const char* options :
       {"-R 2", "-m 4", "-u 3", "-z 1", "-C 1", "-M 1", "-N 2", "-a 0", "-a 2", "-a 3", "-w 0", "-c 3"}) {
    const auto result = run_program("all_gather_perf -t 2 -b 1K -e 4K -f 2 -n 3 " + std::string(options) + " 2>&1");
    EXPECT_EQ(result.code, 0) << options << "\n" << result.text;
  }
}

TEST(Programs, ExitCodes) {
  EXPECT_EQ(run_program("all_reduce_perf --help").code, 0);
  EXPECT_EQ(run_program("all_reduce_perf --frobnicate 2>/dev/null").code, kExitUsage);
  EXPECT_EQ(run_program("all_reduce_perf -G 1 2>/dev/null").code, kExitUsage);
  EXPECT_EQ(run_program("all_reduce_perf -d float -o bxor 2>/dev/null").code, kExitUsage);
  EXPECT_EQ(run_program("all_reduce_perf -g 2 -b 8 -e 8 --algorithm magic 2>/dev/null").code, kExitUsage);
  EXPECT_EQ(run_program("all_reduce_perf -g 2 -b 8 -e 8 2>/dev/null", "SLUICE_SLOTZ=3").code, kExitUsage);
  EXPECT_EQ(run_program("all_reduce_perf -g 2 -b 8 -e 8 2>/dev/null", "NCCL_TESTS_SPLIT='MOD 0'").code, kExitUsage);
}

TEST(Programs, TooSlowFails) {
  const auto slow = run_program("all_reduce_perf -t 2 -b 64 -e 64 -n 2", "NCCL_TESTS_MIN_BW=1000");
  EXPECT_EQ(slow.code, kExitWrong);
  EXPECT_NE(slow.text.find("FAILED"), std::string::npos);
  EXPECT_EQ(run_program("all_reduce_perf -t 2 -b 64 -e 64 -n 2", "NCCL_TESTS_MIN_BW=0").code, 0);
}

TEST(Programs, GroupsOfASplitRunSideBySide) {
  for (const char* split : {"NCCL_TESTS_SPLIT='MOD 2'", "NCCL_TESTS_SPLIT='DIV 3'", "NCCL_TESTS_SPLIT_MASK=0x1"}) {
    const auto result = run_program("all_reduce_perf -g 4 -b 8 -e 1K -f 8 -n 2 2>&1", split);
    EXPECT_EQ(result.code, 0) << split << "\n" << result.text;
    EXPECT_NE(result.text.find("Group  1"), std::string::npos) << result.text;
  }
}

TEST(Programs, LanesShowTheSpreadOfIterationsAndWhatRanBeside) {
  for (const char* transport : {"SLUICE_TRANSPORT=shm", "SLUICE_TRANSPORT=tcp"}) {
    const auto result = run_program(
        "all_reduce_perf -g 2 -b 8K -e 8K -n 50 --lane tp:urgent --beside all_reduce:1M:bulk --beside "
        "alltoall:64K:dp:normal:2 "
        "--gap 1ms 2>&1",
        transport);
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_NE(result.text.find("# Out of bounds values : 0 OK"), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("# Lane: tp:urgent"), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("of 50 iterations; all_reduce:1M:bulk:bulk: "), std::string::npos) << result.text;
    EXPECT_NE(result.text.find("; alltoall:64K:dp:normal:2: "), std::string::npos) << result.text;
  }
  EXPECT_EQ(run_program("all_reduce_perf -g 2 -b 8 -e 8 --beside all_reduce:8:bulk 2>&1", "SLUICE_TRANSPORT=loop").code,
            kExitUsage);
}

TEST(Programs, JsonHasTheTable) {
  const auto path = std::filesystem::temp_directory_path() / ("programs_test_" + std::to_string(::getpid()) + ".json");
  const auto result =
      run_program("reduce_scatter_perf -g 2 -b 64 -e 1K -f 4 -n 3 -I 1 -d int32 -o max -J " + path.string());
  EXPECT_EQ(result.code, 0) << result.text;
  std::ifstream file(path);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["version"], 3);
  ASSERT_EQ(json["results"].size(), 3u);
  const auto& row = json["results"][2];
  EXPECT_EQ(row["size"], 1024);
  EXPECT_EQ(row["count"], 128);
  EXPECT_EQ(row["type"], "int32");
  EXPECT_EQ(row["redop"], "max");
  EXPECT_EQ(row["out_of_place"]["nwrong"], 0);
  EXPECT_EQ(row["out_of_place_per_iter"]["times_us"].size(), 3u);
  EXPECT_EQ(json["out_of_bounds"]["okay"], true);
  std::filesystem::remove(path);
}

TEST(Programs, TrafficFromAFile) {
  const auto path =
      std::filesystem::temp_directory_path() / ("programs_test_" + std::to_string(::getpid()) + ".matrix");
  std::ofstream(path) << "0 400 0\n8 0 1000\n4 4 4\n";
  const std::string variables =
      "NCCL_TESTS_ALLTOALLV_MATRIX_FILE=" + path.string() + " NCCL_TESTS_ALLTOALLV_PRINT_SUMMARY=1";
  const auto result = run_program("alltoallv_perf -g 3 -b 4K -e 4K -n 2", variables);
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("rank=1 send_bytes=1008 recv_bytes=404"), std::string::npos) << result.text;
  EXPECT_EQ(run_program("alltoallv_perf -g 3 -b 512 -e 512 -n 2 2>/dev/null", variables).code, kExitUsage);
  EXPECT_EQ(run_program("alltoallv_perf -g 3 -b 1K -e 4K -n 2 2>/dev/null", variables).code, kExitUsage);
  std::filesystem::remove(path);
}

TEST(Programs, ARankThatIsKilledEndsTheOthers) {
  const auto result = test::run_shell(
      "timeout 60 sh -c '" SLUICE_PROGRAMS
      "/all_reduce_perf -g 3 -b 8 -e 8 -N 0 -n 1 2>&1 >/dev/null & parent=$!; sleep 2; "
      "read first second rest < /proc/$parent/task/$parent/children; kill -9 $second; wait $parent; echo code $?'");
  EXPECT_NE(result.text.find("killed by signal 9"), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("code 137"), std::string::npos) << result.text;
}

// ---- under a launcher

const char* const kMpirun = "timeout 100 mpirun --allow-run-as-root --oversubscribe ";

class UnderMpi : public testing::Test {
 protected:
  static bool missing() {
    return test::run_shell("mpirun --version 2>/dev/null").text.find("Open MPI") == std::string::npos;
  }
};

TEST_F(UnderMpi, LaunchedProcessesAreRanks) {
  if (missing()) GTEST_SKIP() << "no Open MPI on this machine";
  const auto result =
      test::run_shell(kMpirun + std::string("-n 4 " SLUICE_PROGRAMS "/alltoallv_perf -b 0 -e 2K -f 8 2>&1"));
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("#  Rank  3"), std::string::npos) << result.text;
}

TEST_F(UnderMpi, ProcessesAndThreadsMultiplyThem) {
  if (missing()) GTEST_SKIP() << "no Open MPI on this machine";
  const auto result =
      test::run_shell(kMpirun + std::string("-n 2 " SLUICE_PROGRAMS "/all_reduce_perf -g 2 -t 2 -b 0 -e 2K -f 8 2>&1"));
  EXPECT_EQ(result.code, 0) << result.text;
  EXPECT_NE(result.text.find("#  Rank  7"), std::string::npos) << result.text;
}

// Told that half of the ranks are elsewhere, they meet by an id that MPI carries.
TEST_F(UnderMpi, JobsOfSeveralHostsMeetThroughMpi) {
  if (missing()) GTEST_SKIP() << "no Open MPI on this machine";
  for (const char* options : {"-n 4", "-n 2"}) {
    const std::string more = std::string(options) == "-n 2" ? " -g 2" : "";
    const auto result = test::run_shell(kMpirun + std::string(options) + " sh -c 'OMPI_COMM_WORLD_LOCAL_SIZE=1 exec " +
                                        SLUICE_PROGRAMS "/all_gather_perf -b 0 -e 2K -f 8" + more + "' 2>&1");
    if (result.text.find("this build has no MPI") != std::string::npos) GTEST_SKIP() << "built without MPI";
    EXPECT_EQ(result.code, 0) << result.text;
    EXPECT_NE(result.text.find("#  Rank  3"), std::string::npos) << result.text;
  }
}

TEST(UnderTorchrun, VariablesAreEnough) {
  const auto result = test::run_shell(
      "export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 20000)) SLUICE_SECRET=test; for RANK in 0 "
      "1 2; do export "
      "RANK; "
      "timeout 60 " SLUICE_PROGRAMS "/all_reduce_perf -b 0 -e 2K -f 8 2>&1 & done; wait");
  EXPECT_NE(result.text.find("# Out of bounds values : 0 OK"), std::string::npos) << result.text;
  EXPECT_NE(result.text.find("#  Rank  2"), std::string::npos) << result.text;
}

}  // namespace
}  // namespace sluice::tools
