// Choosing an address and a port, on made-up interfaces.
#include "comm/bootstrap/address.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstring>

#include "tests/comm/bootstrap/processes.h"

namespace sluice {
namespace {

const std::vector<InterfaceAddress> kInterfaces{{"lo", 0x7f000001, 8, true},
                                                {"docker0", 0xac110001, 16, false},
                                                {"eth0", 0x0a000005, 24, false},
                                                {"ib0", 0xc0a80a05, 24, false}};

TEST(Address, IsChosenByName) { EXPECT_EQ(*choose_address("ib0", kInterfaces), 0xc0a80a05u); }

TEST(Address, IsChosenBySubnet) {
  EXPECT_EQ(*choose_address("10.0.0.0/8", kInterfaces), 0x0a000005u);
  EXPECT_EQ(*choose_address("192.168.10.99/24", kInterfaces), 0xc0a80a05u);
  EXPECT_EQ(*choose_address("127.0.0.0/8", kInterfaces), 0x7f000001u);
  EXPECT_EQ(*choose_address("0.0.0.0/0", kInterfaces), 0x7f000001u);
}

TEST(Address, ANameOrSubnetThatMatchesNothingIsAnErrorThatListsWhatExists) {
  for (const char* setting : {"eth1", "11.0.0.0/8"}) {
    const auto result = choose_address(setting, kInterfaces);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::invalid_argument);
    EXPECT_NE(result.error().text.find(setting), std::string::npos);
    EXPECT_NE(result.error().text.find("eth0 10.0.0.5/24"), std::string::npos) << result.error().text;
    EXPECT_NE(result.error().text.find("ib0 192.168.10.5/24"), std::string::npos);
  }
}

TEST(Address, AMalformedSubnetIsNamed) {
  for (const char* setting : {"10.0.0/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "/8"})
    EXPECT_EQ(choose_address(setting, kInterfaces).error().code, Code::invalid_argument) << setting;
}

TEST(Address, ARootNamesRealNetworksBeforeBridgesAndNoLoopback) {
  EXPECT_EQ(root_addresses(kInterfaces), (std::vector<std::uint32_t>{0x0a000005, 0xc0a80a05, 0xac110001}));
  EXPECT_EQ(root_addresses(std::span(kInterfaces).first(1)), (std::vector<std::uint32_t>{kLoopbackAddress}));
}

TEST(Address, APortRangeIsParsedOrNamed) {
  EXPECT_EQ(parse_port_range("")->first, 0);
  EXPECT_EQ(parse_port_range("5000-5010")->last, 5010);
  for (const char* setting : {"5000", "0-10", "10-5", "1-70000", "a-b", "5-"})
    EXPECT_FALSE(parse_port_range(setting).ok()) << setting;
}

TEST(Address, ThisMachineHasLoopback) {
  const auto interfaces = list_interfaces();
  ASSERT_TRUE(interfaces.ok());
  EXPECT_TRUE(choose_address("127.0.0.0/8", *interfaces).ok());
}

TEST(Address, DottedTextAndLocalhostResolve) {
  EXPECT_EQ(*resolve("10.1.2.3"), 0x0a010203u);
  EXPECT_TRUE(is_loopback(*resolve("localhost")));
  EXPECT_FALSE(resolve("no-such-host.invalid").ok());
}

TEST(Address, ThisHostsOwnNameResolvesEvenIfTheResolverDoesNotKnowIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a process another host name";
  test::Process renamed([](int) {
    constexpr const char* kName = "a-name-that-no-resolver-knows.invalid";
    if (::unshare(CLONE_NEWUTS) != 0 || ::sethostname(kName, std::strlen(kName)) != 0) return 1;
    return resolve(kName).ok() && !resolve("another-name.invalid").ok() ? 0 : 2;
  });
  EXPECT_EQ(renamed.wait(), 0);
}

}  // namespace
}  // namespace sluice
