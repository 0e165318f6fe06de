// The text form of topologies, on made and recorded machines, and on texts that are wrong in one place.
#include "transport/topology/topology.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/rng.h"
#include "transport/topology/probe.h"

namespace sluice {
namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TopologyNode random_node(Rng& rng, int depth) {
  TopologyNode node;
  node.kind = static_cast<NodeKind>(rng.below(kNodeKinds));
  node.index = static_cast<int>(rng.below(1000));
  if (rng.chance(0.5)) node.name = rng.chance(0.5) ? "plain" : "with \"quotes\", \\ and  blanks ";
  if (rng.chance(0.3)) node.address = "0000:3b:00.0";
  if (rng.chance(0.3)) node.level = 1 + static_cast<int>(rng.below(4));
  if (rng.chance(0.3)) node.os = static_cast<int>(rng.below(256));
  if (rng.chance(0.3)) node.bytes = rng.next();
  if (rng.chance(0.3)) node.bytes_per_second = rng.next();
  for (std::uint64_t i = rng.below(4); depth < 4 && i > 0; --i) node.children.push_back(random_node(rng, depth + 1));
  return node;
}

TEST(Topology, ParseGivesBackWhatWasPrinted) {
  Rng rng(17);
  for (int i = 0; i < 200; ++i) {
    const Topology topology{random_node(rng, 0)};
    const auto parsed = parse_topology(print(topology));
    ASSERT_TRUE(parsed.ok()) << parsed.error().text << "\n" << print(topology);
    EXPECT_EQ(*parsed, topology);
  }
}

TEST(Topology, RecordedMachinesAreReadAndPrintedAlike) {
  int machines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(SLUICE_RECORDED_MACHINES)) {
    const std::string text = read(entry.path());
    const auto topology = parse_topology(text);
    ASSERT_TRUE(topology.ok()) << entry.path() << ": " << topology.error().text;
    EXPECT_EQ(print(*topology), text) << entry.path();
    EXPECT_GT(topology->count(NodeKind::thread), 0u) << entry.path();
    ++machines;
  }
  EXPECT_GE(machines, 3);
}

TEST(Topology, WrongTextsAreRefusedWithTheLine) {
  const std::string good = "sluice topology 1\nmachine 0\n  core 0\n    thread 0 os 1\n";
  ASSERT_TRUE(parse_topology(good).ok());
  struct Wrong {
    std::string text;
    std::string says;
  };
  const Wrong wrong[] = {
      {"", "no machine"},
      {"sluice topology 1\n", "no machine"},
      {"sluice topology 2\nmachine 0\n", "line 1"},
      {good + "machine 1\n", "line 5"},                          // a second root
      {"sluice topology 1\nmachine 0\n    core 0\n", "line 3"},  // a level is missing
      {"sluice topology 1\nmachine 0\n   core 0\n", "line 3"},   // odd blanks
      {"sluice topology 1\nmachine 0\n  toaster 0\n", "'toaster'"},
      {"sluice topology 1\nmachine\n", "index"},
      {"sluice topology 1\nmachine 0 colour red\n", "'colour'"},
      {"sluice topology 1\nmachine 0 bytes -5\n", "'bytes'"},
      {"sluice topology 1\nmachine 0 name \"open\n", "'name'"},
      {"sluice topology 1\nmachine 0 bytes 99999999999999999999999\n", "'bytes'"},
  };
  for (const Wrong& one : wrong) {
    const auto parsed = parse_topology(one.text);
    ASSERT_FALSE(parsed.ok()) << one.text;
    EXPECT_EQ(parsed.error().code, Code::invalid_argument);
    EXPECT_NE(parsed.error().text.find(one.says), std::string::npos) << parsed.error().text;
  }
}

TEST(Topology, DepthIsBounded) {
  std::string text = "sluice topology 1\n";
  for (int depth = 0; depth <= kTopologyDepthMax; ++depth)
    text += std::string(static_cast<std::size_t>(2 * depth), ' ') + "group 0\n";
  EXPECT_FALSE(parse_topology(text).ok());
}

class Probe : public testing::Test {
 protected:
  static bool missing() { return !probe_topology().ok() && probe_topology().error().code == Code::unsupported; }
};

TEST_F(Probe, ThisMachineRoundTrips) {
  if (missing()) GTEST_SKIP() << "built without hwloc";
  const auto topology = probe_topology();
  ASSERT_TRUE(topology.ok()) << topology.error().text;
  EXPECT_GT(topology->count(NodeKind::thread), 0u);
  EXPECT_GT(topology->root.bytes, 0u);
  EXPECT_EQ(*parse_topology(print(*topology)), *topology);
}

TEST_F(Probe, MadeUpMachinesHaveWhatWasAsked) {
  if (missing()) GTEST_SKIP() << "built without hwloc";
  const auto topology = synthetic_topology("package:2 numa:2 core:4 pu:2");
  ASSERT_TRUE(topology.ok()) << topology.error().text;
  EXPECT_EQ(topology->count(NodeKind::package), 2u);
  EXPECT_EQ(topology->count(NodeKind::numa), 4u);
  EXPECT_EQ(topology->count(NodeKind::core), 16u);
  EXPECT_EQ(topology->count(NodeKind::thread), 32u);
  EXPECT_EQ(synthetic_topology("toaster:2").error().code, Code::invalid_argument);
}

}  // namespace
}  // namespace sluice
