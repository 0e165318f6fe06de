// Jobs as launchers describe them, and rendezvous files as enemies and accidents leave them.
#include "comm/bootstrap/environment.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "comm/bootstrap/rendezvous_file.h"
#include "tests/comm/bootstrap/job.h"

namespace sluice::test {
namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char path[] = "/tmp/sluice-test-XXXXXX";
    EXPECT_NE(::mkdtemp(path), nullptr);
    path_ = path;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Config config_with(std::string deadline = "20s") {
  Config config;
  EXPECT_TRUE(config.set(Setting::join_deadline, std::move(deadline), Origin::file).ok());
  return config;
}

// All ranks of a job, each with the launcher's variables that `of` gives it.
std::vector<Status> join_all(int ranks, const std::function<LaunchEnvironment(Rank)>& of,
                             const Config& config = config_with()) {
  std::vector<Status> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      LaunchEnvironment launch = of(rank);
      launch.rank = rank;
      launch.ranks = ranks;
      auto joined = control_from_environment(config, launch);
      outcomes[static_cast<std::size_t>(rank)] = joined.status();
      if (!joined.ok()) return;
      EXPECT_EQ((*joined)->rank(), rank);
      EXPECT_EQ((*joined)->ranks(), ranks);
      (*joined)->leave();
    });
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

void expect_all_ok(const std::vector<Status>& outcomes) {
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank)
    EXPECT_TRUE(outcomes[rank].ok()) << rank << ": " << outcomes[rank].text();
}

TEST(Environment, NothingSetIsOneRankAlone) {
  auto control = control_from_environment(Config(), {});
  ASSERT_TRUE(control.ok());
  EXPECT_EQ((*control)->ranks(), 1);
  LaunchEnvironment one;
  one.source = "openmpi";
  one.rank = 0;
  one.ranks = 1;
  EXPECT_TRUE(control_from_environment(Config(), one).ok());
}

TEST(Environment, SluiceRunSharesAUniqueId) {
  const std::string id = to_hex(*make_local_unique_id());
  expect_all_ok(join_all(4, [&](Rank) {
    LaunchEnvironment launch;
    launch.source = "sluice";
    launch.unique_id = id;
    return launch;
  }));
}

LaunchEnvironment torchrun(std::string address, int port, std::string secret) {
  LaunchEnvironment launch;
  launch.source = "torchrun";
  launch.master_address = std::move(address);
  launch.master_port = port;
  launch.secret = std::move(secret);
  return launch;
}

TEST(Environment, TorchrunsVariablesLeadToTheFirstFreePortAfterItsOwn) {
  // Its store holds the master port, and another program the next.
  auto store = listen_tcp(kLoopbackAddress, {});
  ASSERT_TRUE(store.ok());
  const int port = store->at.port;
  auto other =
      listen_tcp(kLoopbackAddress, {static_cast<std::uint16_t>(port + 1), static_cast<std::uint16_t>(port + 1)});
  for (const char* address : {"127.0.0.1", "localhost"})
    expect_all_ok(join_all(3, [&](Rank) { return torchrun(address, port, "hush"); }));
}

TEST(Environment, TorchrunByHostNameWorksOnItsOwnHost) {
  expect_all_ok(
      join_all(3, [&](Rank) { return torchrun(this_process().host_name, 29'000 + ::getpid() % 1000, "hush"); }));
}

TEST(Environment, TorchrunWithoutASecretWarns) {
  testing::internal::CaptureStderr();
  expect_all_ok(join_all(2, [&](Rank) { return torchrun("127.0.0.1", 28'000 + ::getpid() % 1000, ""); }));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("SLUICE_SECRET is not set"), std::string::npos);
}

TEST(Environment, TorchrunWithDifferentSecretsIsRefused) {
  set_log_level(LogLevel::off);
  const auto outcomes = join_all(
      2, [&](Rank rank) { return torchrun("127.0.0.1", 27'000 + ::getpid() % 1000, rank == 0 ? "a" : "b"); },
      config_with("1500ms"));
  EXPECT_EQ(outcomes[0].code(), Code::timeout);
  EXPECT_EQ(outcomes[1].code(), Code::refused) << outcomes[1].text();
  set_log_level(LogLevel::warn);
}

TEST(Environment, TorchrunWithoutMasterIsNamed) {
  const auto outcomes = join_all(2, [](Rank) { return torchrun("", -1, ""); });
  for (const Status& one : outcomes) {
    EXPECT_EQ(one.code(), Code::invalid_argument);
    EXPECT_NE(one.text().find("MASTER_ADDR"), std::string::npos);
  }
}

TEST(Environment, PortsNearTheEndStayBelowIt) {
  LaunchEnvironment launch = torchrun("127.0.0.1", 65'530, "x");
  launch.ranks = 2;
  launch.rank = 0;
  const auto rendezvous = torchrun_rendezvous(launch);
  ASSERT_TRUE(rendezvous.ok());
  EXPECT_LE(rendezvous->port + rendezvous->ports, 65'536);
  EXPECT_LT(rendezvous->port + rendezvous->ports - 1, 65'530);
}

LaunchEnvironment by_file(const std::string& path) {
  LaunchEnvironment launch;
  launch.source = "sluice";
  launch.rendezvous_file = path;
  return launch;
}

TEST(Environment, ARendezvousFileIsMadeReadAndRemoved) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  expect_all_ok(join_all(5, [&](Rank) { return by_file(path); }));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Environment, AStaleRendezvousFileIsOvercome) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  ASSERT_TRUE(write_rendezvous_file(path, *to_rendezvous(*make_local_unique_id()), "").ok());
  expect_all_ok(join_all(3, [&](Rank rank) {
    if (rank == 0) std::this_thread::sleep_for(300ms);  // the others find the stale one first
    return by_file(path);
  }));
}

TEST(Environment, ARankWithoutANumberIsNamed) {
  const auto result = control_from_environment(Config(), by_file("/tmp/x"));
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().text.find("SLUICE_RANK"), std::string::npos);
}

TEST(Environment, MpiOnOneHostMeetsByTheJobsName) {
  expect_all_ok(join_all(4, [&](Rank) {
    LaunchEnvironment launch;
    launch.source = "openmpi";
    launch.job = "prterun-test-" + std::to_string(::getpid()) + "@1";
    launch.local_ranks = 4;
    return launch;
  }));
}

TEST(Environment, MpiOverSeveralHostsSaysWhatToSet) {
  const auto outcomes = join_all(4, [&](Rank) {
    LaunchEnvironment launch;
    launch.source = "openmpi";
    launch.job = "job";
    launch.local_ranks = 2;
    return launch;
  });
  for (const Status& one : outcomes) {
    EXPECT_EQ(one.code(), Code::invalid_argument);
    EXPECT_NE(one.text().find("SLUICE_RENDEZVOUS_FILE"), std::string::npos) << one.text();
  }
}

TEST(RendezvousFile, IsPrivate) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  ASSERT_TRUE(write_rendezvous_file(path, *to_rendezvous(*make_local_unique_id()), "").ok());
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  EXPECT_TRUE(read_rendezvous_file(path, "").ok());
}

TEST(RendezvousFile, HostileOnesAreRefused) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  EXPECT_EQ(read_rendezvous_file(path, "").error().code, Code::timeout);
  ASSERT_TRUE(write_rendezvous_file(path, *to_rendezvous(*make_local_unique_id()), "").ok());
  for (const mode_t open : {0606u, 0660u, 0640u, 0602u, 0644u}) {
    ASSERT_EQ(::chmod(path.c_str(), open), 0);
    EXPECT_EQ(read_rendezvous_file(path, "").error().code, Code::refused) << std::oct << open;
  }
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_EQ(::symlink(path.c_str(), directory.file("link").c_str()), 0);
  EXPECT_EQ(read_rendezvous_file(directory.file("link"), "").error().code, Code::refused);
  ASSERT_EQ(::mkfifo(directory.file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(read_rendezvous_file(directory.file("pipe"), "").error().code, Code::refused);
  if (::geteuid() == 0) {  // only then can the owner be changed
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
    EXPECT_EQ(read_rendezvous_file(path, "").error().code, Code::refused);
  }
}

TEST(RendezvousFile, AHostileOneEndsTheJoinAtOnce) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  ASSERT_TRUE(write_rendezvous_file(path, *to_rendezvous(*make_local_unique_id()), "").ok());
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  LaunchEnvironment launch = by_file(path);
  launch.rank = 1;
  launch.ranks = 2;
  const auto result = control_from_environment(config_with(), launch);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::refused);
  EXPECT_NE(result.error().text.find(path), std::string::npos) << result.error().text;
}

TEST(RendezvousFile, OthersAreNotTakenForOne) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  for (const std::string& text :
       {std::string("hello\n"), std::string("sluice rendezvous 1\njob \nid 12\n"), std::string(10'000, 'x')}) {
    std::ofstream(path) << text;
    ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
    EXPECT_EQ(read_rendezvous_file(path, "").error().code, Code::invalid_argument) << text;
  }
  ASSERT_TRUE(write_rendezvous_file(path, *to_rendezvous(*make_local_unique_id()), "job 1").ok());
  EXPECT_EQ(read_rendezvous_file(path, "job 2").error().code, Code::timeout);
}

TEST(RendezvousFile, IsRemovedOnlyByItsWriter) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("meet");
  const Rendezvous mine = *to_rendezvous(*make_local_unique_id());
  const Rendezvous later = *to_rendezvous(*make_local_unique_id());
  ASSERT_TRUE(write_rendezvous_file(path, later, "").ok());
  remove_rendezvous_file(path, mine);
  EXPECT_TRUE(std::filesystem::exists(path));
  remove_rendezvous_file(path, later);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RendezvousFile, TheDirectoryMustBePrivate) {
  const TemporaryDirectory directory;
  EXPECT_EQ(*private_directory(directory.file("")), directory.file(""));
  const std::string open = directory.file("open");
  ASSERT_EQ(::mkdir(open.c_str(), 0755), 0);
  const auto fallback = private_directory(open);
  ASSERT_TRUE(fallback.ok()) << fallback.error().text;
  EXPECT_EQ(*fallback, "/tmp/sluice-" + std::to_string(::geteuid()));
}

}  // namespace
}  // namespace sluice::test
