#include "examples/text/read_text.h"

#include <fmt/format.h>
#ifdef SLUICE_HAS_ZLIB
#include <zlib.h>
#endif

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

namespace sluice::examples {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

Error bad_file(const std::string& path, std::string_view what) {
  return {Code::invalid_argument, fmt::format("data file {}: {}", path, what)};
}

Status check_file(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    const bool is_default = path == kDefaultText;
    return bad_file(path, is_default
                              ? "does not exist; install the package dict-gcide, or give another text with --data"
                              : "does not exist");
  }
  if (std::filesystem::is_directory(status)) return bad_file(path, "is a folder, not a text");
  return {};
}

#ifdef SLUICE_HAS_ZLIB
// zlib passes plain files through unchanged.
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(gzopen(path.c_str(), "rb")) {}
  bool open() const { return file_ != nullptr; }
  // Bytes read, 0 at the end, negative for an error.
  long read(std::uint8_t* to, std::size_t bytes) { return gzread(file_.get(), to, static_cast<unsigned>(bytes)); }
  // Of the whole file, after the end was read: a stream that was cut off shows only here.
  bool sound() const {
    int error = Z_OK;
    gzerror(file_.get(), &error);
    return error == Z_OK || error == Z_STREAM_END;
  }

 private:
  struct Close {
    void operator()(gzFile file) const { gzclose(file); }
  };
  std::unique_ptr<gzFile_s, Close> file_;
};
#else
class Reader {
 public:
  explicit Reader(const std::string& path) : file_(std::fopen(path.c_str(), "rb")) {}
  bool open() const { return file_ != nullptr; }
  long read(std::uint8_t* to, std::size_t bytes) {
    const std::size_t got = std::fread(to, 1, bytes, file_.get());
    return got == 0 && std::ferror(file_.get()) != 0 ? -1 : static_cast<long>(got);
  }
  bool sound() const { return true; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::unique_ptr<std::FILE, Close> file_;
};
#endif

[[maybe_unused]] bool is_gzip(const std::vector<std::uint8_t>& bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

}  // namespace

Result<std::vector<std::uint8_t>> read_text(const std::string& path) {
  SLUICE_TRY(check_file(path));
  Reader reader(path);
  if (!reader.open()) return bad_file(path, std::strerror(errno));
  std::vector<std::uint8_t> text;
  for (;;) {
    const std::size_t before = text.size();
    if (before >= kTextBytesMax) return bad_file(path, fmt::format("is larger than {} bytes", kTextBytesMax));
    text.resize(before + kPieceBytes);
    const long got = reader.read(text.data() + before, kPieceBytes);
    if (got < 0) return bad_file(path, "can't be read: the compressed data is damaged");
    text.resize(before + static_cast<std::size_t>(got));
    if (got == 0) break;
  }
  if (!reader.sound()) return bad_file(path, "can't be read: the compressed data ends too early");
  if (text.empty()) return bad_file(path, "is empty");
#ifndef SLUICE_HAS_ZLIB
  if (is_gzip(text))
    return Error{Code::unsupported, fmt::format("data file {}: is compressed, and this build has no zlib", path)};
#endif
  return text;
}

}  // namespace sluice::examples
