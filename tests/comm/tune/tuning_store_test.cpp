// Written in one step, found by fingerprint, and read only if nobody else could have written it.
#include "comm/tune/tuning_store.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/comm/tune/scratch_folder.h"
#include "transport/topology/probe.h"

namespace sluice {
namespace {

using test::made_up;
using test::ScratchFolder;

Config tuned_by(const std::string& value) {
  Config config;
  if (const Status done = config.set(Setting::tuning, value, Origin::file); !done.ok()) die_of(done.error());
  return config;
}

// Points XDG_CACHE_HOME elsewhere while it lives.
class CacheHome {
 public:
  explicit CacheHome(const std::string& path) : before_(environment_variable("XDG_CACHE_HOME")) {
    ::setenv("XDG_CACHE_HOME", path.c_str(), 1);
  }
  ~CacheHome() {
    if (before_.empty())
      ::unsetenv("XDG_CACHE_HOME");
    else
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
  }

 private:
  std::string before_;
};

TEST(TuningStore, WhatWasWrittenIsLoaded) {
  const ScratchFolder folder;
  const std::string path = folder.path() + "/made/on/the/way/x.tuning";
  const MachineFile file = made_up(Collective::all_reduce, "ring");
  ASSERT_TRUE(write_tuning(path, file).ok());
  struct stat found {};
  ASSERT_EQ(::stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0644u);
  const Tuning tuning = load_tuning(tuned_by(path));
  ASSERT_NE(tuning.file, nullptr) << tuning.why_none;
  EXPECT_EQ(*tuning.file, file);
  EXPECT_NE(tuning.digest, 0u);
  // Another text, another digest; and nothing but the file is left in the folder.
  ASSERT_TRUE(write_tuning(path, made_up(Collective::all_reduce, "one_shot")).ok());
  EXPECT_NE(load_tuning(tuned_by(path)).digest, tuning.digest);
  const auto folder_of = std::filesystem::path(path).parent_path();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_of), {}), 1);
}

TEST(TuningStore, AFileIsFoundByTheMachinesFingerprint) {
  const auto topology = probe_topology();
  if (!topology.ok()) GTEST_SKIP() << "no probe: " << topology.error().text;
  const ScratchFolder folder;
  const CacheHome home(folder.path());
  EXPECT_NE(load_tuning(Config()).why_none.find("sluice tune writes it"), std::string::npos);
  MachineFile file = made_up(Collective::all_reduce, "ring");
  ASSERT_TRUE(write_tuning(tuning_path(tuning_folder(), file.machine), file).ok());
  EXPECT_EQ(load_tuning(Config()).file, nullptr) << "of another machine";
  const std::uint64_t here = machine_fingerprint(*topology);
  // Another machine's file under this one's name.
  ASSERT_TRUE(write_tuning(tuning_path(tuning_folder(), here), file).ok());
  const Tuning wrong = load_tuning(Config());
  EXPECT_TRUE(wrong.refused);
  EXPECT_NE(wrong.why_none.find("another machine"), std::string::npos) << wrong.why_none;
  file.machine = here;
  ASSERT_TRUE(write_tuning(tuning_path(tuning_folder(), here), file).ok());
  const Tuning tuning = load_tuning(Config());
  ASSERT_NE(tuning.file, nullptr) << tuning.why_none;
  EXPECT_EQ(tuning.file->machine, here);
  EXPECT_EQ(load_tuning(tuned_by("off")).file, nullptr);
}

TEST(TuningStore, AFolderIsNamedByXdgOrHome) {
  {
    const CacheHome home("/somewhere");
    EXPECT_EQ(tuning_folder(), "/somewhere/sluice");
  }
  const CacheHome relative("not/absolute");
  EXPECT_EQ(tuning_folder(), environment_variable("HOME") + "/.cache/sluice");
  EXPECT_EQ(tuning_path("/x", 0xab), "/x/machine-00000000000000ab.tuning");
}

void expect_refused(const std::string& path, const std::string& says) {
  const Tuning tuning = load_tuning(tuned_by(path));
  EXPECT_EQ(tuning.file, nullptr) << path;
  EXPECT_EQ(tuning.digest, 0u);
  EXPECT_TRUE(tuning.refused) << path;
  EXPECT_NE(tuning.why_none.find(says), std::string::npos) << tuning.why_none;
  EXPECT_NE(tuning.why_none.find(path), std::string::npos) << tuning.why_none;
}

TEST(TuningStore, WhatOthersMayHaveWrittenIsNotRead) {
  const ScratchFolder folder;
  const std::string text = print(made_up(Collective::all_reduce, "ring"));
  const std::string path = folder.file("x", text);
  ASSERT_NE(load_tuning(tuned_by(path)).file, nullptr);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  expect_refused(path, "can be written by other users");
  ASSERT_EQ(::chmod(path.c_str(), 0620), 0);
  expect_refused(path, "can be written by other users");
  expect_refused(folder.path(), "is not a plain file");
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, "is not a plain file");  // and nobody waits for a writer
}

TEST(TuningStore, AFileOfAnotherUserIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const ScratchFolder folder;
  const std::string path = folder.file("x", print(made_up(Collective::all_reduce, "ring")));
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  expect_refused(path, "belongs to user 12345");
}

TEST(TuningStore, ADamagedFileIsRefusedByNameLineAndField) {
  const ScratchFolder folder;
  const std::string text = print(made_up(Collective::all_reduce, "ring"));
  expect_refused(folder.file("cut", text.substr(0, text.size() - 4)), "cut off");
  expect_refused(folder.file("line", "sluice tuning 1\nmachine x\n"), "line 2: machine is 'x'");
  expect_refused(folder.file("long", std::string(kMachineFileBytesMax + 1, 'x')), "more than 1048576");
  expect_refused(folder.path() + "/missing", "there is no tuning file");
}

TEST(MachineFingerprint, KnowsWhatDecidesAndNothingElse) {
  const std::string machine =
      "sluice topology 1\nmachine 0 name \"a\" bytes 8589934592\n  package 0 name \"EPYC\"\n    cache 0 level 3 bytes "
      "33554432\n      core 0\n        thread 0 os 4\n  interface 0 name \"eth0\" address \"10.0.0.7/24\"\n";
  const auto print_of = [&](const std::string& from, const std::string& to) {
    std::string text = machine;
    if (!from.empty()) text.replace(text.find(from), from.size(), to);
    const auto topology = parse_topology(text);
    EXPECT_TRUE(topology.ok()) << text;
    return machine_fingerprint(*topology);
  };
  const std::uint64_t whole = print_of("", "");
  EXPECT_EQ(print_of("name \"a\"", "name \"b\""), whole);
  EXPECT_EQ(print_of("10.0.0.7", "10.0.0.8"), whole);
  EXPECT_EQ(print_of("os 4", "os 5"), whole);
  EXPECT_EQ(print_of("8589934592", "8589000000"), whole);  // the same in GiB
  EXPECT_NE(print_of("8589934592", "17179869184"), whole);
  EXPECT_NE(print_of("EPYC", "Xeon"), whole);
  EXPECT_NE(print_of("33554432", "16777216"), whole);
  EXPECT_NE(print_of("      core 0\n        thread 0 os 4\n", "      core 0\n        thread 0\n        thread 1\n"),
            whole);
}

}  // namespace
}  // namespace sluice
