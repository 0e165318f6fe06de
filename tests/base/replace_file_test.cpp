#include "base/replace_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice {
namespace {

class ReplaceFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  std::size_t files() {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::string folder_ = testing::TempDir() + "replace_file_" + std::to_string(::getpid());
  std::string path_ = folder_ + "/file";
};

TEST_F(ReplaceFile, WritesTheWholeTextWithTheRightsAskedFor) {
  const std::string text(100'000, 'x');
  ASSERT_TRUE(replace_file(path_, "old", 0644, "the file").ok());
  ASSERT_TRUE(replace_file(path_, text, 0600, "the file").ok());
  EXPECT_EQ(read(path_), text);
  struct stat found {};
  ASSERT_EQ(::stat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777U, 0600U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(ReplaceFile, DoesNotFollowALink) {
  std::ofstream(folder_ + "/other") << "kept";
  ASSERT_EQ(::symlink("other", path_.c_str()), 0);
  ASSERT_TRUE(replace_file(path_, "new", 0600, "the file").ok());
  EXPECT_EQ(read(folder_ + "/other"), "kept");
  EXPECT_EQ(read(path_), "new");
}

TEST_F(ReplaceFile, LeavesNothingBehindWhenItCannot) {
  std::filesystem::create_directory(path_);  // a folder of that name
  const Status failed = replace_file(path_, "new", 0600, "the file");
  EXPECT_EQ(failed.code(), Code::system);
  EXPECT_NE(failed.text().find("the file " + path_), std::string::npos) << failed.text();
  EXPECT_EQ(files(), 1U);
  EXPECT_FALSE(replace_file(folder_ + "/none/file", "new", 0600, "the file").ok());
}

}  // namespace
}  // namespace sluice
