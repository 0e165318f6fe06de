// Reading a text, compressed or not, and its entropy against a dumber count.
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "examples/text/entropy.h"
#include "examples/text/read_text.h"

namespace sluice::examples {
namespace {

// A file in the test's own folder, removed with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const char* name)
      : path_(testing::TempDir() + "sluice_" + std::to_string(getpid()) + "_" + name) {}
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

  void write(std::string_view bytes) const {
    std::FILE* file = std::fopen(path_.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    std::fwrite(bytes.data(), 1, bytes.size(), file);
    std::fclose(file);
  }
  void write_compressed(const std::string& bytes) const {
    gzFile file = gzopen(path_.c_str(), "wb");
    ASSERT_NE(file, nullptr);
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  std::string contents() const {
    std::FILE* file = std::fopen(path_.c_str(), "rb");
    std::string bytes(1 << 20, '\0');
    bytes.resize(std::fread(bytes.data(), 1, bytes.size(), file));
    std::fclose(file);
    return bytes;
  }

 private:
  std::string path_;
};

std::string as_string(const std::vector<std::uint8_t>& text) { return {text.begin(), text.end()}; }

TEST(ReadText, GivesTheBytesOfPlainAndCompressedFiles) {
  std::string text;
  for (unsigned i = 0; i < 300000; ++i) text += static_cast<char>(i * i % 251);  // more than one piece when read
  const TemporaryFile plain("plain"), compressed("compressed.gz");
  plain.write(text);
  compressed.write_compressed(text);
  EXPECT_EQ(as_string(*read_text(plain.path())), text);
  EXPECT_EQ(as_string(*read_text(compressed.path())), text);
}

TEST(ReadText, NamesTheFileAndWhatIsWrongWithIt) {
  const auto missing = read_text("/nowhere/text");
  EXPECT_EQ(missing.error().code, Code::invalid_argument);
  EXPECT_EQ(missing.error().text, "data file /nowhere/text: does not exist");
  EXPECT_EQ(read_text(testing::TempDir()).error().text,
            "data file " + testing::TempDir() + ": is a folder, not a text");
  const TemporaryFile empty("empty");
  empty.write("");
  EXPECT_EQ(read_text(empty.path()).error().text, "data file " + empty.path() + ": is empty");
}

TEST(ReadText, RefusesACompressedFileThatIsCutOffOrDamaged) {
  std::string text;
  for (int i = 0; i < 20000; ++i) text += std::to_string(i * 7919 % 1009);
  const TemporaryFile file("damaged.gz");
  file.write_compressed(text);
  const std::string whole = file.contents();
  file.write(whole.substr(0, whole.size() / 2));
  EXPECT_EQ(read_text(file.path()).error().code, Code::invalid_argument);
  std::string damaged = whole;
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x55);
  file.write(damaged);
  EXPECT_EQ(read_text(file.path()).error().code, Code::invalid_argument);
}

TEST(Entropy, IsTheMeanSurpriseOfEachByte) {
  const std::string text = "a rose is a rose is a rose, said she";
  std::map<char, double> single, before;
  std::map<std::string, double> pair;
  for (std::size_t i = 0; i < text.size(); ++i) {
    ++single[text[i]];
    if (i > 0) ++before[text[i - 1]], ++pair[text.substr(i - 1, 2)];
  }
  double unigram = 0, bigram = 0;
  for (std::size_t i = 0; i < text.size(); ++i) unigram -= std::log(single[text[i]] / static_cast<double>(text.size()));
  for (std::size_t i = 1; i < text.size(); ++i) bigram -= std::log(pair[text.substr(i - 1, 2)] / before[text[i - 1]]);
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  EXPECT_NEAR(entropy(bytes).unigram, unigram / static_cast<double>(text.size()), 1e-12);
  EXPECT_NEAR(entropy(bytes).bigram, bigram / static_cast<double>(text.size() - 1), 1e-12);
}

TEST(Entropy, OfWhatCannotSurpriseIsZero) {
  const std::vector<std::uint8_t> same(100, 'x');
  EXPECT_EQ(entropy(same).unigram, 0);
  EXPECT_EQ(entropy(same).bigram, 0);
  EXPECT_EQ(entropy({}).unigram, 0);
  std::vector<std::uint8_t> alternating;
  for (int i = 0; i < 100; ++i) alternating.push_back(i % 2 ? 'a' : 'b');
  EXPECT_NEAR(entropy(alternating).unigram, std::log(2), 1e-12);
  EXPECT_NEAR(entropy(alternating).bigram, 0, 1e-12);
}

}  // namespace
}  // namespace sluice::examples
