#include "tools/perf/report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

namespace sluice::tools {
namespace {

std::string contents(std::FILE* file) {
  std::string text;
  std::rewind(file);
  for (int one = std::fgetc(file); one != EOF; one = std::fgetc(file)) text += static_cast<char>(one);
  return text;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

TEST(Report, NumbersFitTheirColumns) {
  EXPECT_EQ(fitted(1.234, 7), "   1.23");
  EXPECT_EQ(fitted(12345.678, 7), "12345.7");
  EXPECT_EQ(fitted(1234567.8, 7), "1234568");
  EXPECT_EQ(fitted(12345678.9, 7), "1.2e+07");
  EXPECT_EQ(fitted(0, 6), "  0.00");
}

TEST(Report, AFileThatExistsGetsANumber) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("report_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  Options options;
  options.output_file = (folder / "out.json").string();
  const File sink(std::tmpfile());
  for (int i = 0; i < 3; ++i) {
    auto report = Report::create(perf_test("all_reduce"), options, {"all_reduce_perf"}, sink.get());
    ASSERT_TRUE(report.ok()) << report.error().text;
    report->header(Config(), {"#  Rank 0"});
    report->row({.bytes = 8, .count = 2, .operation = "sum"});
    report->footer({});
    EXPECT_TRUE(report->finish().ok());
  }
  for (const char* name : {"out.json", "out.json.0", "out.json.1"}) {
    std::ifstream file(folder / name);
    const auto json = nlohmann::json::parse(file, nullptr, false);
    ASSERT_FALSE(json.is_discarded()) << name;
    EXPECT_EQ(json["version"], 3);
    EXPECT_EQ(json["results"].size(), 1u);
    EXPECT_EQ(json["out_of_bounds"]["okay"], true);
  }
  std::filesystem::remove_all(folder);
  options.output_file = "/nowhere/out.json";
  EXPECT_EQ(Report::create(perf_test("all_reduce"), options, {}, sink.get()).error().code, Code::system);
}

TEST(Report, RowsHaveThirteenColumns) {
  Options options;
  const File sink(std::tmpfile());
  auto report = Report::create(perf_test("all_reduce"), options, {}, sink.get());
  ASSERT_TRUE(report.ok());
  report->row({.bytes = 1024,
               .count = 256,
               .operation = "sum",
               .out_of_place = {.seconds = 1e-5, .algorithm_bandwidth = 0.1, .bus_bandwidth = 0.15, .wrong = 3}});
  std::istringstream words(contents(sink.get()));
  const std::vector<std::string> columns{std::istream_iterator<std::string>(words), {}};
  EXPECT_EQ(columns, (std::vector<std::string>{"1024", "256", "float", "sum", "-1", "10.00", "0.10", "0.15", "3", "N/A",
                                               "N/A", "N/A", "N/A"}));
}

TEST(Report, FooterSaysFailed) {
  Options options;
  const File sink(std::tmpfile());
  auto report = Report::create(perf_test("all_reduce"), options, {}, sink.get());
  report->footer({.wrong = 7, .bus_bandwidth_sum = 10, .bus_bandwidths = 2, .least_bandwidth = 20});
  const std::string text = contents(sink.get());
  EXPECT_NE(text.find("# Out of bounds values : 7 FAILED"), std::string::npos) << text;
  EXPECT_NE(text.find("# Avg bus bandwidth    : 5 FAILED"), std::string::npos) << text;
}

TEST(Statistics, OfAKnownSeries) {
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1.0);  // 100 .. 1
  const Statistics all = statistics_of(values);
  EXPECT_EQ(all.least, 1);
  EXPECT_EQ(all.most, 100);
  EXPECT_EQ(all.mean, 50.5);
  EXPECT_EQ(all.percentile_95, 95);
  EXPECT_EQ(all.percentile_99, 99);
  EXPECT_NEAR(all.deviation, 28.866, 1e-3);
  EXPECT_EQ(statistics_of({3}).percentile_99, 3);
}

}  // namespace
}  // namespace sluice::tools
