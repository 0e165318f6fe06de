#include "comm/bootstrap/rendezvous_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/replace_file.h"
#include "base/unique_fd.h"
#include "comm/bootstrap/secrets.h"

namespace sluice {
namespace {

constexpr std::string_view kTitle = "sluice rendezvous 1";
constexpr std::size_t kFileBytesMax = 4096;

std::string text_of(const UniqueId& id, const std::string& job) {
  return std::string(kTitle) + "\njob " + job + "\nid " + to_hex(id) + "\n";
}

// "" when the line is missing; moves on to the next.
std::string_view take_line(std::string_view& text, std::string_view label) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line.starts_with(label) ? line.substr(label.size()) : std::string_view();
}

Status check_private(const struct stat& found, const std::string& what) {
  const std::string cure = ": it is not used; remove it, or choose another path";
  if (found.st_uid != ::geteuid())
    return {Code::refused, what + " belongs to user " + std::to_string(found.st_uid) + ", not to user " +
                               std::to_string(::geteuid()) + cure};
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return {Code::refused, what + " is open to other users (chmod go= it)" + cure};
  return {};
}

Result<Rendezvous> parse(std::string_view text, const std::string& path, const std::string& job) {
  if (text.empty() || take_line(text, "") != kTitle)
    return Error{Code::invalid_argument, path + " is not a rendezvous file: remove it, or choose another path"};
  if (const std::string_view theirs = take_line(text, "job "); theirs != job)
    return Error{Code::timeout, path + " is still of job '" + std::string(theirs) + "'"};
  const auto id = unique_id_from_hex(take_line(text, "id "));
  if (!id.ok()) return Error{Code::invalid_argument, path + ": " + id.error().text};
  return to_rendezvous(*id);
}

}  // namespace

Status write_rendezvous_file(const std::string& path, const Rendezvous& rendezvous, const std::string& job) {
  SLUICE_TRY_ASSIGN(const UniqueId id, to_unique_id(rendezvous));
  return replace_file(path, text_of(id, job), 0600, "the rendezvous file");
}

Result<Rendezvous> read_rendezvous_file(const std::string& path, const std::string& job) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd && errno == ENOENT) return Error{Code::timeout, path + " is not there yet: rank 0 writes it"};
  if (!fd && errno == ELOOP)
    return Error{Code::refused, path + " is a symbolic link: it is not followed; name the file itself"};
  if (!fd) return system_error("can't open the rendezvous file " + path, errno);
  struct stat found {};
  if (::fstat(fd.get(), &found) != 0) return system_error("can't look at the rendezvous file " + path, errno);
  if (!S_ISREG(found.st_mode)) return Error{Code::refused, path + " is not a plain file"};
  SLUICE_TRY(check_private(found, path));
  std::array<char, kFileBytesMax> text;
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return system_error("can't read the rendezvous file " + path, errno);
  return parse({text.data(), static_cast<std::size_t>(got)}, path, job);
}

void remove_rendezvous_file(const std::string& path, const Rendezvous& rendezvous) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  std::array<char, kFileBytesMax> text;
  const ssize_t got = fd ? ::read(fd.get(), text.data(), text.size()) : -1;
  const auto id = to_unique_id(rendezvous);
  if (got <= 0 || !id.ok()) return;
  const std::string_view held(text.data(), static_cast<std::size_t>(got));
  if (held.find(to_hex(*id)) != std::string_view::npos) ::unlink(path.c_str());
}

Result<std::string> private_directory(const std::string& runtime_directory) {
  struct stat found {};
  if (!runtime_directory.empty() && ::lstat(runtime_directory.c_str(), &found) == 0 && S_ISDIR(found.st_mode) &&
      check_private(found, runtime_directory).ok())
    return runtime_directory;
  const std::string path = "/tmp/sluice-" + std::to_string(::geteuid());
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return system_error("can't make the directory " + path, errno);
  if (::lstat(path.c_str(), &found) != 0) return system_error("can't look at the directory " + path, errno);
  if (!S_ISDIR(found.st_mode)) return Error{Code::refused, path + " is not a directory: remove it"};
  SLUICE_TRY(check_private(found, path));
  return path;
}

}  // namespace sluice
