#include "base/replace_file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/unique_fd.h"

namespace sluice {
namespace {

// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put == 0 ? EIO : errno;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return 0;
}

}  // namespace

Status replace_file(const std::string& path, std::string_view text, mode_t mode, std::string_view what, bool sync) {
  std::string fresh = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(fresh.data(), O_CLOEXEC));  // for its owner alone
  const auto failed = [&](const char* step, int error) {
    return system_error(std::string("can't ") + step + " " + std::string(what) + " " + path, error);
  };
  if (!fd) return failed("make", errno);
  Status done;
  if (const int error = write_all(fd.get(), text); error != 0) done = failed("write", error);
  if (done.ok() && ::fchmod(fd.get(), mode) != 0) done = failed("protect", errno);
  if (done.ok() && sync && ::fsync(fd.get()) != 0) done = failed("write", errno);
  if (done.ok() && ::rename(fresh.c_str(), path.c_str()) != 0) done = failed("name", errno);
  if (!done.ok()) ::unlink(fresh.c_str());
  return done;
}

}  // namespace sluice
