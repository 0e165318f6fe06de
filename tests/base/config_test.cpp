#include "base/config.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

namespace sluice {
namespace {

constexpr const char* kLaunchVariables[] = {"SLUICE_CONFIG",
                                            "SLUICE_UNIQUE_ID",
                                            "SLUICE_RENDEZVOUS_FILE",
                                            "SLUICE_RANK",
                                            "SLUICE_RANKS",
                                            "SLUICE_LOCAL_RANK",
                                            "SLUICE_LOCAL_RANKS",
                                            "SLUICE_SECRET",
                                            "RANK",
                                            "WORLD_SIZE",
                                            "LOCAL_RANK",
                                            "LOCAL_WORLD_SIZE",
                                            "MASTER_ADDR",
                                            "MASTER_PORT",
                                            "OMPI_COMM_WORLD_RANK",
                                            "OMPI_COMM_WORLD_SIZE",
                                            "PMIX_NAMESPACE",
                                            "PMI_RANK",
                                            "PMI_SIZE",
                                            "SLURM_PROCID",
                                            "SLURM_NTASKS",
                                            "SLURM_JOB_ID",
                                            "SLURM_STEP_ID"};

// Runs each test without a variable that the house reads, and puts everything back.
class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    for (const SettingRow& row : setting_rows()) forget(std::string(row.variable));
    for (const char* variable : kLaunchVariables) forget(variable);
  }
  ~ConfigTest() override {
    for (const auto& [variable, value] : before_) {
      if (value.empty())
        ::unsetenv(variable.c_str());
      else
        ::setenv(variable.c_str(), value.c_str(), 1);
    }
    if (!file_.empty()) std::filesystem::remove(file_);
  }

  void set(const char* variable, const char* value) {
    forget(variable);
    ::setenv(variable, value, 1);
  }

  void set_file(std::string_view text) {
    std::string path = std::filesystem::temp_directory_path() / "sluice_config_test_XXXXXX";
    const int fd = ::mkstemp(path.data());
    ASSERT_GE(fd, 0);
    ::close(fd);
    std::ofstream(path) << text;
    file_ = path;
    set("SLUICE_CONFIG", path.c_str());
  }

  static std::string error_of_load() {
    const Result<Config> config = Config::load();
    if (config.ok()) return "loaded";
    EXPECT_EQ(config.error().code, Code::invalid_argument);
    return config.error().text;
  }

 private:
  void forget(const std::string& variable) {
    before_.emplace(variable, environment_variable(variable.c_str()));
    ::unsetenv(variable.c_str());
  }

  std::map<std::string, std::string> before_;  // empty: it was not set
  std::string file_;
};

bool has(const std::string& text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (text.find(part) == std::string::npos) return false;
  return true;
}

TEST_F(ConfigTest, EveryDefaultIsValidAndSaysItsEffect) {
  const Config config;
  for (std::size_t i = 0; i < setting_rows().size(); ++i) {
    const SettingRow& row = setting_rows()[i];
    EXPECT_EQ(static_cast<std::size_t>(row.setting), i);
    EXPECT_EQ(config.text(row.setting), row.fallback);
    EXPECT_EQ(config.origin(row.setting), Origin::default_value);
    EXPECT_FALSE(row.effect.empty());
    std::string variable = "SLUICE_";
    for (const char letter : row.name) variable += static_cast<char>(std::toupper(letter));
    EXPECT_EQ(row.variable, variable);
  }
  EXPECT_EQ(config.bytes(Setting::slot_bytes), 128u * 1024);
  EXPECT_EQ(config.duration(Setting::deadline), std::chrono::minutes(10));
  EXPECT_EQ(config.number(Setting::slots), 8);
}

TEST_F(ConfigTest, FileBeatsEnvironmentBeatsDefault) {
  set("SLUICE_SLOTS", "16");
  set("SLUICE_SPIN", "5us");
  set_file("# comment\n\n  slots = 32   # trailing\nalgorithm = all_reduce=ring\n");
  const Result<Config> config = Config::load();
  ASSERT_TRUE(config.ok()) << config.error().text;
  EXPECT_EQ(config->number(Setting::slots), 32);
  EXPECT_EQ(config->origin(Setting::slots), Origin::file);
  EXPECT_EQ(config->duration(Setting::spin), std::chrono::microseconds(5));
  EXPECT_EQ(config->origin(Setting::spin), Origin::environment);
  EXPECT_EQ(config->text(Setting::algorithm), "all_reduce=ring");
  EXPECT_EQ(config->origin(Setting::order), Origin::default_value);
}

TEST_F(ConfigTest, AnUnknownVariableIsNamed) {
  set("SLUICE_DEADLIN", "10s");
  EXPECT_TRUE(has(error_of_load(), {"SLUICE_DEADLIN", "not known", "spelling"})) << error_of_load();
}

TEST_F(ConfigTest, VariablesOfLaunchersAreNoMistake) {
  set("SLUICE_RANK", "0");
  set("SLUICE_SECRET", "s");
  EXPECT_EQ(error_of_load(), "loaded");
}

TEST_F(ConfigTest, ABadValueIsNamedWithVariableValueAndWhatIsAllowed) {
  const struct {
    const char* variable;
    const char* value;
    std::initializer_list<std::string_view> says;
  } cases[] = {
      {"SLUICE_LOG", "loud", {"SLUICE_LOG", "'loud'", "off error warn info debug"}},
      {"SLUICE_ORDER", "", {"SLUICE_ORDER", "''", "fast canonical"}},
      {"SLUICE_SLOTS", "many", {"SLUICE_SLOTS", "'many'", "whole number"}},
      {"SLUICE_SLOTS", "8.5", {"SLUICE_SLOTS", "'8.5'", "whole number"}},
      {"SLUICE_SLOTS", "3", {"SLUICE_SLOTS", "'3'", "between 4 and 1024"}},
      {"SLUICE_SLOTS", "99999999999999999999", {"SLUICE_SLOTS", "whole number"}},
      {"SLUICE_SLOT_BYTES", "-1", {"SLUICE_SLOT_BYTES", "'-1'", "64K"}},
      {"SLUICE_SLOT_BYTES", "1T", {"SLUICE_SLOT_BYTES", "'1T'", "between 1K and 256M"}},
      {"SLUICE_DEADLINE", "10", {"SLUICE_DEADLINE", "'10'", "30s or 10min"}},
      {"SLUICE_DEADLINE", "5ns", {"SLUICE_DEADLINE", "'5ns'", "between 1ms and 525600min"}},
      {"SLUICE_SPIN", "2s", {"SLUICE_SPIN", "between 0ns and 1s"}},
  };
  for (const auto& one : cases) {
    set(one.variable, one.value);
    EXPECT_TRUE(has(error_of_load(), one.says)) << error_of_load();
    ::unsetenv(one.variable);
  }
}

TEST_F(ConfigTest, ABadLineOfAFileIsNamedWithItsNumber) {
  set_file("slots = 8\nslotz = 9\n");
  EXPECT_TRUE(has(error_of_load(), {":2:", "'slotz = 9'"})) << error_of_load();
  set_file("slots\n");
  EXPECT_TRUE(has(error_of_load(), {":1:", "'slots'"})) << error_of_load();
  set_file("slots = 0\n");
  EXPECT_TRUE(has(error_of_load(), {"slots", "'0'", "between 4 and 1024"})) << error_of_load();
}

TEST_F(ConfigTest, AMissingFileIsNamed) {
  set("SLUICE_CONFIG", "/nowhere/sluice.conf");
  EXPECT_TRUE(has(error_of_load(), {"SLUICE_CONFIG", "/nowhere/sluice.conf"}));
}

TEST_F(ConfigTest, AFailedSetLeavesTheOldValue) {
  Config config;
  EXPECT_FALSE(config.set(Setting::slots, "1", Origin::file).ok());
  EXPECT_EQ(config.number(Setting::slots), 8);
  EXPECT_EQ(config.origin(Setting::slots), Origin::default_value);
}

TEST(ParseBytes, TakesBinarySuffixes) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("64K"), 65536u);
  EXPECT_EQ(*parse_bytes(" 64 KiB "), 65536u);
  EXPECT_EQ(*parse_bytes("1.5M"), 1572864u);
  EXPECT_EQ(*parse_bytes("3G"), std::size_t{3} << 30);
  EXPECT_EQ(*parse_bytes("2T"), std::size_t{2} << 40);
  for (const char* text : {"", "K", "-1", "1X", "1K1", "1e300", "nan", "inf", "0x10", "1 2"})
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  EXPECT_TRUE(has(parse_bytes("12Q").error().text, {"'12Q'", "K, M, G or T"}));
}

TEST(FormatBytes, RoundTrips) {
  EXPECT_EQ(format_bytes(0), "0");
  EXPECT_EQ(format_bytes(1000), "1000");
  EXPECT_EQ(format_bytes(1536), "1536");
  EXPECT_EQ(format_bytes(std::size_t{16} << 30), "16G");
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 41); bytes = bytes * 3 + 1)
    EXPECT_EQ(*parse_bytes(format_bytes(bytes)), bytes);
}

TEST(ParseDuration, TakesUnits) {
  EXPECT_EQ(*parse_duration("7ns"), Nanoseconds(7));
  EXPECT_EQ(*parse_duration("50us"), std::chrono::microseconds(50));
  EXPECT_EQ(*parse_duration("1.5ms"), std::chrono::microseconds(1500));
  EXPECT_EQ(*parse_duration("30s"), std::chrono::seconds(30));
  EXPECT_EQ(*parse_duration("10 min"), std::chrono::minutes(10));
  for (const char* text : {"", "5", "s", "-1s", "1h", "1e30s"}) EXPECT_FALSE(parse_duration(text).ok()) << text;
}

TEST_F(ConfigTest, OneProcessAloneWasLaunchedByNobody) {
  const auto launch = read_launch_environment();
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->source, "");
  EXPECT_EQ(launch->rank, -1);
  EXPECT_EQ(launch->master_port, -1);
}

TEST_F(ConfigTest, TorchrunsVariablesAreRead) {
  set("RANK", "3");
  set("WORLD_SIZE", "8");
  set("LOCAL_RANK", "1");
  set("LOCAL_WORLD_SIZE", "2");
  set("MASTER_ADDR", "10.0.0.1");
  set("MASTER_PORT", "29500");
  const auto launch = read_launch_environment();
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->source, "torchrun");
  EXPECT_EQ(launch->rank, 3);
  EXPECT_EQ(launch->ranks, 8);
  EXPECT_EQ(launch->local_rank, 1);
  EXPECT_EQ(launch->local_ranks, 2);
  EXPECT_EQ(launch->master_address, "10.0.0.1");
  EXPECT_EQ(launch->master_port, 29500);
}

TEST_F(ConfigTest, ARankWithoutANumberOfRanksIsSaid) {
  set("RANK", "3");
  testing::internal::CaptureStderr();
  const auto launch = read_launch_environment();
  const std::string said = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->source, "");
  EXPECT_TRUE(has(said, {"RANK", "WORLD_SIZE"})) << said;
}

TEST_F(ConfigTest, StepsOfOneSlurmJobAreDifferentJobs) {
  set("SLURM_PROCID", "1");
  set("SLURM_NTASKS", "2");
  set("SLURM_JOB_ID", "77");
  EXPECT_EQ(read_launch_environment()->job, "77");
  set("SLURM_STEP_ID", "3");
  EXPECT_EQ(read_launch_environment()->job, "77.3");
}

TEST_F(ConfigTest, OurOwnLauncherBeatsMpi) {
  set("OMPI_COMM_WORLD_RANK", "1");
  set("OMPI_COMM_WORLD_SIZE", "2");
  set("PMIX_NAMESPACE", "job7");
  EXPECT_EQ(read_launch_environment()->source, "openmpi");
  EXPECT_EQ(read_launch_environment()->job, "job7");
  set("SLUICE_RANK", "0");
  set("SLUICE_RANKS", "4");
  EXPECT_EQ(read_launch_environment()->source, "sluice");
  EXPECT_EQ(read_launch_environment()->ranks, 4);
}

TEST_F(ConfigTest, ABadRankIsNamed) {
  set("WORLD_SIZE", "8");
  for (const char* value : {"8", "-1", "x", "1.0", "99999999999"}) {
    set("RANK", value);
    const auto launch = read_launch_environment();
    ASSERT_FALSE(launch.ok()) << value;
    EXPECT_EQ(launch.error().code, Code::invalid_argument);
    EXPECT_TRUE(has(launch.error().text, {"RANK", value})) << launch.error().text;
  }
}

TEST_F(ConfigTest, AnUnsetVariableIsEmpty) {
  EXPECT_EQ(environment_variable("SLUICE_SECRET"), "");
  set("SLUICE_SECRET", "abc");
  EXPECT_EQ(environment_variable("SLUICE_SECRET"), "abc");
}

}  // namespace
}  // namespace sluice
