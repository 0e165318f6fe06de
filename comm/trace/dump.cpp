#include "comm/trace/dump.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>

#include "base/replace_file.h"
#include "comm/executor/fingerprint.h"

namespace sluice::detail {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char one : text) {
    if (one == '"' || one == '\\')
      (out += '\\') += one;
    else if (static_cast<unsigned char>(one) < 0x20 || static_cast<unsigned char>(one) >= 0x7f)  // may be no UTF-8
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(one));
    else
      out += one;
  }
  return out + '"';
}

template <typename List, typename Text>
std::string array_of(const List& list, const Text& text) {
  std::string out = "[";
  for (const auto& one : list) out += (out.size() > 1 ? ",\n" : "") + text(one);
  return out + "]";
}

// Ticks of the runtime's clock as nanoseconds of the system's.
class SystemTime {
 public:
  explicit SystemTime(const Clock& clock)
      : ticks_(clock.ticks()),
        per_tick_(clock.seconds_per_tick() * 1e9),
        now_(std::chrono::system_clock::now().time_since_epoch()) {}
  std::int64_t at(std::uint64_t ticks) const {
    return now_.count() -
           static_cast<std::int64_t>(static_cast<double>(static_cast<std::int64_t>(ticks_ - ticks)) * per_tick_);
  }

 private:
  std::uint64_t ticks_;
  double per_tick_;
  Nanoseconds now_;
};

std::string_view word(TraceKind kind) {
  constexpr std::array<std::string_view, 5> kWords{"none", "turn", "wait", "done", "failed"};
  return kWords.at(static_cast<std::size_t>(kind));
}

std::string json_of(const TraceOperation& one, const SystemTime& time) {
  return fmt::format(
      R"({{"kind":{},"sequence":{},"posted_ns":{},"slice":{},"waits_for":{},"waits_on":"{}","stuck_seconds":{:.6f}}})",
      quoted(one.kind), one.sequence, time.at(one.posted_at), one.slice, one.waits_for, name(one.waits_on),
      one.stuck_seconds);
}

std::string json_of(const TraceCommunicator& one, const SystemTime& time) {
  return fmt::format(
      R"({{"number":{},"id":{},"name":{},"lane":{},"priority":{},"rank":{},"members":[{}],"posted":{},"error":{},"unfinished":{}}})",
      one.number, one.id, quoted(one.name), quoted(one.lane), quoted(one.priority), one.rank,
      fmt::join(one.members, ","), one.posted, quoted(one.error),
      array_of(one.unfinished, [&](const TraceOperation& operation) { return json_of(operation, time); }));
}

std::string json_of(const TraceEvent& one, const SystemTime& time) {
  return fmt::format(
      R"({{"at_ns":{},"what":"{}","communicator":{},"kind":"{}","sequence":{},"posted_ns":{},"bytes":{},"slice":{},"peer":{},"reason":"{}"}})",
      time.at(one.at), word(one.kind), one.communicator, name(one.operation), one.sequence, time.at(one.posted_at),
      one.bytes(), one.slice(), one.peer(), name(one.reason()));
}

Status make_private_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error("can't make the folder " + path, errno);
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0) return system_error("can't look at the folder " + path, errno);
  if (!S_ISDIR(found.st_mode)) return {Code::refused, path + " is no folder: name another by SLUICE_TRACE"};
  if (found.st_uid != ::geteuid() || (found.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return {Code::refused,
            path + " can be written by other users: traces are not put there; name another by SLUICE_TRACE"};
  return {};
}

}  // namespace

std::string to_json(const TraceDump& dump, const Clock& clock) {
  const SystemTime time(clock);
  return fmt::format(
      "{{\"sluice_trace\":{},\n\"rank\":{},\"ranks\":{},\"host\":{},\"job\":{},\"why\":{},\"written_ns\":{},"
      "\"recorded\":{},\n"
      "\"lost\":{},\n\"communicators\":{},\n\"events\":{}}}\n",
      kTraceVersion, dump.rank, dump.ranks, quoted(dump.host), quoted(dump.job), quoted(dump.why),
      time.at(clock.ticks()), dump.recorded,
      array_of(
          dump.lost,
          [](const TraceLoss& one) { return fmt::format(R"({{"rank":{},"how":{}}})", one.rank, quoted(one.how)); }),
      array_of(dump.communicators, [&](const TraceCommunicator& one) { return json_of(one, time); }),
      array_of(dump.events, [&](const TraceEvent& one) { return json_of(one, time); }));
}

Result<std::string> write_trace(const std::string& folder, const TraceDump& dump, const Clock& clock) {
  SLUICE_TRY(make_private_folder(folder));
  const std::string job = folder + "/" + dump.job;
  SLUICE_TRY(make_private_folder(job));
  std::string path = job + "/rank-" + std::to_string(dump.rank) + ".json";
  SLUICE_TRY(replace_file(path, to_json(dump, clock), 0600, "the trace"));
  return path;
}

}  // namespace sluice::detail
