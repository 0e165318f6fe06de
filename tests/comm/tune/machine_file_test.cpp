// What is printed reads back equal; whatever else a file may hold is refused by line and field, and never believed.
#include "comm/tune/machine_file.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/comm/tune/scratch_folder.h"

namespace sluice {
namespace {

MachineFile drawn(std::uint64_t seed) {
  Rng rng(seed);
  MachineFile file;
  file.machine = rng.next();
  file.description = "2 cores of \\ (R) 'x'";
  for (auto& link : file.links) {
    if (rng.chance(0.3)) continue;
    link.emplace();
    link->latency_seconds = 1e-7 + rng.uniform();
    link->bytes_per_second = 1e3 + rng.uniform() * 1e12;
    link->combine_bytes_per_second = 1e3 + rng.uniform() * 1e12;
    for (const Algorithm& one : all_algorithms())
      for (const int ranks : {2, 4}) {
        TimeCurve curve{&one, ranks, {}};
        std::uint64_t bytes = 0;
        for (std::uint64_t left = 1 + rng.below(12); left > 0; --left)
          curve.points.push_back({bytes += 1 + rng.below(1 << 20), 1e-9 + rng.uniform()});
        link->curves.push_back(std::move(curve));
      }
  }
  return file;
}

TEST(MachineFile, ReadsBackWhatItPrinted) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const MachineFile file = drawn(seed);
    const auto again = parse_machine_file(print(file));
    ASSERT_TRUE(again.ok()) << "seed " << seed << ": " << again.error().text;
    EXPECT_EQ(*again, file) << "seed " << seed;
  }
}

TEST(MachineFile, CurvesOfACollectiveAreFoundTogether) {
  MachineFile file = drawn(1);
  while (!file.links[0]) file = drawn(file.machine);
  for (const Collective collective : all_collectives()) {
    std::size_t count = 0;
    for (const Algorithm& one : all_algorithms()) count += one.collective == collective ? 2 : 0;
    EXPECT_EQ(file.links[0]->of(collective).size(), count);
    for (const TimeCurve& curve : file.links[0]->of(collective)) EXPECT_EQ(curve.algorithm->collective, collective);
  }
}

const std::string kHead = "sluice tuning 1\nmachine 0123456789abcdef \"made up\"\n";
const std::string kLink = "link tcp latency_seconds 1e-06 bytes_per_second 1e9 combine_bytes_per_second 1e9\n";

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

TEST(MachineFile, WhatCannotBeRightIsRefusedByLineAndField) {
  const std::string good = "times all_reduce 2 ring 8 1e-06 64 2e-06\n";
  ASSERT_TRUE(parse_machine_file(joined({kHead, kLink, good, "end\n"})).ok());
  for (const auto& [text, says] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "cut off"},
           {"sluice tuning 2\n", "line 1: the title is 'sluice tuning 2'"},
           {"sluice tuning 1\nend\n", "line 2: the keyword is 'end'"},
           {"sluice tuning 1\nmachine 12 \"x\"\nend\n", "line 2: machine is '12'"},
           {"sluice tuning 1\nmachine 0123456789ABCDEF \"x\"\nend\n", "16 hexadecimal digits"},
           {"sluice tuning 1\nmachine 0123456789abcdef x\nend\n", "in quotes"},
           {"sluice tuning 1\nmachine 0123456789abcdef \"\x1b[2J\"\nend\n", "printable"},
           {kHead + good + "end\n", "line 3: the keyword is 'times'"},
           {kHead + kLink, "cut off"},
           {kHead + kLink + "end", ""},  // without the last newline it is whole
           {kHead + kLink + "end\nmore\n", "what follows the end"},
           {kHead + kLink + "frobnicate\nend\n", "line 4: the keyword is 'frobnicate'"},
           {joined({kHead, kLink, kLink, "end\n"}), "line 4: link is 'tcp', but must be there only once"},
           {kHead + "link radio latency_seconds 1\nend\n", "link is 'radio'"},
           {kHead + "link tcp bytes_per_second 1\nend\n", "must be latency_seconds"},
           {kHead + "link tcp latency_seconds nan bytes_per_second 1e9 combine_bytes_per_second 1e9\nend\n", "'nan'"},
           {kHead + "link tcp latency_seconds -1 bytes_per_second 1e9 combine_bytes_per_second 1e9\nend\n", "'-1'"},
           {kHead + "link tcp latency_seconds 1 bytes_per_second inf combine_bytes_per_second 1e9\nend\n", "'inf'"},
           {kHead + "link tcp latency_seconds 1 bytes_per_second 1e9 combine_bytes_per_second 0\nend\n", "'0'"},
           {kHead + kLink + "times magic 2 ring 8 1\nend\n", "collective is 'magic'"},
           {kHead + kLink + "times all_reduce 1 ring 8 1\nend\n", "ranks is '1'"},
           {kHead + kLink + "times all_reduce 5000 ring 8 1\nend\n", "ranks is '5000'"},
           {kHead + kLink + "times all_reduce 2 magic 8 1\nend\n", "algorithm is 'magic'"},
           {kHead + kLink + "times all_reduce 2 ring\nend\n", "bytes is ''"},
           {kHead + kLink + "times all_reduce 2 ring 8\nend\n", "seconds is ''"},
           {kHead + kLink + "times all_reduce 2 ring 8.5 1\nend\n", "bytes is '8.5'"},
           {kHead + kLink + "times all_reduce 2 ring 99999999999999999999 1\nend\n", "bytes is '9999"},
           {kHead + kLink + "times all_reduce 2 ring 64 1 8 1\nend\n", "more than at the point before"},
           {kHead + kLink + "times all_reduce 2 ring 8 1e9\nend\n", "seconds is '1e9'"},
           {joined({kHead, kLink, good, good, "end\n"}), "there once for so many ranks"},
           {joined({kHead, kLink, "times all_to_all 2 bruck 8 1\n", good, "end\n"}), "in order"},
           {kHead + std::string(kMachineFileBytesMax, '\n'), "more than"},
       }) {
    const auto file = parse_machine_file(text);
    EXPECT_EQ(file.ok(), says.empty()) << text.substr(0, 200);
    if (file.ok()) continue;
    EXPECT_EQ(file.error().code, Code::invalid_argument);
    EXPECT_NE(file.error().text.find(says), std::string::npos) << text.substr(0, 200) << "\n" << file.error().text;
  }
}

TEST(MachineFile, TooManyPointsAreRefused) {
  std::string line = "times all_reduce 2 ring";
  for (std::size_t i = 1; i <= kTimePointsMax; ++i) line += " " + std::to_string(i) + " 1";
  EXPECT_TRUE(parse_machine_file(kHead + kLink + line + "\nend\n").ok());
  EXPECT_FALSE(parse_machine_file(kHead + kLink + line + " 1000 1\nend\n").ok());
}

// Bytes changed, cut out, doubled and put elsewhere: refused with a reason, or a value that reads back.
TEST(MachineFile, SurvivesHostileBytes) {
  const std::string whole = print(test::made_up(Collective::all_reduce, "ring"));
  Rng rng(20261129);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = whole;
    for (std::uint64_t edits = 1 + rng.below(4); edits > 0 && !text.empty(); --edits) {
      const std::size_t at = rng.below(text.size());
      const std::size_t length = rng.below(std::min<std::size_t>(text.size() - at, 24) + 1);
      const std::string part = text.substr(at, length);
      switch (rng.below(4)) {
        case 0: text[at] = static_cast<char>(rng.below(256)); break;
        case 1: text.erase(at, length); break;
        case 2: text.insert(rng.below(text.size()), part); break;
        default: text.insert(at, 1, "0123456789.e- \n\""[rng.below(16)]);
      }
    }
    const auto file = parse_machine_file(text);
    if (!file.ok()) {
      ASSERT_FALSE(file.error().text.empty());
      continue;
    }
    ++accepted;
    const auto again = parse_machine_file(print(*file));
    ASSERT_TRUE(again.ok()) << again.error().text << "\n" << text;
    ASSERT_EQ(*again, *file) << text;
  }
  EXPECT_GT(accepted, 0);  // some edits change a number only
}

}  // namespace
}  // namespace sluice
