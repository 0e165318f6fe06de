#include "tools/trace/rank_trace.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "comm/trace/dump.h"

namespace sluice::tools {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kRanksOfATraceMax = 1 << 16;
constexpr std::size_t kTextMax = 4096;

template <typename Number>
std::optional<Number> as(const Json& value) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (value.is_number()) return value.get<Number>();
  } else if (value.is_number_unsigned()) {
    if (const auto found = value.get<std::uint64_t>(); std::in_range<Number>(found)) return static_cast<Number>(found);
  } else if (value.is_number_integer()) {
    if (const auto found = value.get<std::int64_t>(); std::in_range<Number>(found)) return static_cast<Number>(found);
  }
  return std::nullopt;
}

// Takes fields out of a document that may hold anything; the first thing that is wrong stays.
class Reader {
 public:
  explicit Reader(std::string& wrong) : wrong_(wrong) {}

  template <typename Number>
  Number number(const Json& from, const char* field, Number least, Number most) {
    const Json* const value = find(from, field);
    if (value == nullptr) return least;
    const std::optional<Number> found = as<Number>(*value);
    if (!found) return fail(field, "is no number of its kind"), least;
    if (*found < least || *found > most) return fail(field, "is out of range"), least;
    return *found;
  }
  std::string text(const Json& from, const char* field) {
    const Json* const value = find(from, field);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(field, "is no text"), std::string();
    return value->get<std::string>().substr(0, kTextMax);
  }
  const Json& list(const Json& from, const char* field) {
    static const Json kNone = Json::array();
    const Json* const value = find(from, field);
    if (value == nullptr) return kNone;
    if (!value->is_array()) return fail(field, "is no list"), kNone;
    return *value;
  }

 private:
  const Json* find(const Json& from, const char* field) {
    if (!from.is_object() || !from.contains(field)) return fail(field, "is missing"), nullptr;
    return &from[field];
  }
  void fail(const char* field, const char* what) {
    if (wrong_.empty()) wrong_ = std::string("its field '") + field + "' " + what;
  }
  std::string& wrong_;
};

constexpr auto kRankMost = static_cast<Rank>(kRanksOfATraceMax);
constexpr std::uint64_t kNumberMost = UINT64_MAX;
constexpr std::int64_t kTimeMost = INT64_MAX / 4;  // differences fit too

TracedOperation operation_of(const Json& from, Reader& reader) {
  return {.kind = reader.text(from, "kind"),
          .sequence = reader.number<std::uint64_t>(from, "sequence", 0, kNumberMost),
          .posted_ns = reader.number<std::int64_t>(from, "posted_ns", -kTimeMost, kTimeMost),
          .waits_for = reader.number<Rank>(from, "waits_for", -1, kRankMost),
          .waits_on = reader.text(from, "waits_on"),
          .slice = reader.number<std::uint64_t>(from, "slice", 0, kNumberMost),
          .stuck_seconds = reader.number<double>(from, "stuck_seconds", 0, 1e12)};
}

TracedCommunicator communicator_of(const Json& from, Reader& reader) {
  TracedCommunicator one{.number = reader.number<int>(from, "number", 0, UINT16_MAX),
                         .id = reader.number<std::uint64_t>(from, "id", 0, kNumberMost),
                         .name = reader.text(from, "name"),
                         .lane = reader.text(from, "lane"),
                         .priority = reader.text(from, "priority"),
                         .rank = reader.number<Rank>(from, "rank", 0, kRankMost)};
  for (const Json& member : reader.list(from, "members")) one.members.push_back(as<Rank>(member).value_or(-1));
  one.posted = reader.number<std::uint64_t>(from, "posted", 0, kNumberMost);
  one.error = reader.text(from, "error");
  for (const Json& operation : reader.list(from, "unfinished"))
    one.unfinished.push_back(operation_of(operation, reader));
  return one;
}

TracedEvent event_of(const Json& from, Reader& reader) {
  return {.at_ns = reader.number<std::int64_t>(from, "at_ns", -kTimeMost, kTimeMost),
          .posted_ns = reader.number<std::int64_t>(from, "posted_ns", -kTimeMost, kTimeMost),
          .what = reader.text(from, "what"),
          .kind = reader.text(from, "kind"),
          .communicator = reader.number<int>(from, "communicator", 0, UINT16_MAX),
          .sequence = reader.number<std::uint64_t>(from, "sequence", 0, kNumberMost),
          .bytes = reader.number<std::uint64_t>(from, "bytes", 0, kNumberMost),
          .slice = reader.number<std::int64_t>(from, "slice", -1, INT64_MAX),
          .peer = reader.number<Rank>(from, "peer", -1, kRankMost),
          .reason = reader.text(from, "reason")};
}

Result<std::string> read_file(const std::string& path) {
  std::error_code failed;
  const auto bytes = std::filesystem::file_size(path, failed);
  if (failed) return Error{Code::system, path + " can't be read: " + failed.message()};
  if (bytes > kTraceBytesMax) return Error{Code::invalid_argument, path + " is too large to be a trace"};
  std::ifstream file(path, std::ios::binary);
  std::string text(bytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(bytes));
  if (!file) return Error{Code::system, path + " can't be read"};
  return text;
}

Result<std::vector<std::string>> files_of(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return std::vector{path};
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(path, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".json")) files.push_back(at->path().string());
  }
  if (failed) return Error{Code::system, path + " can't be read: " + failed.message()};
  if (files.empty()) return Error{Code::invalid_argument, path + " holds no rank-N.json"};
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

const TracedCommunicator* RankTrace::communicator(int number) const {
  const auto at =
      std::find_if(communicators.begin(), communicators.end(), [&](const auto& one) { return one.number == number; });
  return at == communicators.end() ? nullptr : &*at;
}

Result<RankTrace> parse_trace(const std::string& text) {
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object() || !document.contains("sluice_trace"))
    return Error{Code::invalid_argument, "it is no trace of Sluice"};
  std::string wrong;
  Reader reader(wrong);
  if (reader.number<int>(document, "sluice_trace", 0, INT32_MAX) != detail::kTraceVersion)
    return Error{Code::invalid_argument, "it is a trace of another version of Sluice"};
  RankTrace trace{.rank = reader.number<Rank>(document, "rank", 0, kRankMost),
                  .ranks = reader.number<int>(document, "ranks", 1, kRankMost),
                  .host = reader.text(document, "host"),
                  .job = reader.text(document, "job"),
                  .why = reader.text(document, "why"),
                  .written_ns = reader.number<std::int64_t>(document, "written_ns", 0, kTimeMost)};
  for (const Json& one : reader.list(document, "lost"))
    trace.lost.push_back(reader.number<Rank>(one, "rank", 0, kRankMost));
  for (const Json& one : reader.list(document, "communicators"))
    trace.communicators.push_back(communicator_of(one, reader));
  for (const Json& one : reader.list(document, "events")) trace.events.push_back(event_of(one, reader));
  if (!wrong.empty()) return Error{Code::invalid_argument, wrong};
  return trace;
}

Result<std::vector<RankTrace>> read_traces(const std::vector<std::string>& paths) {
  std::vector<RankTrace> traces;
  for (const std::string& path : paths) {
    SLUICE_TRY_ASSIGN(const std::vector<std::string> files, files_of(path));
    for (const std::string& file : files) {
      SLUICE_TRY_ASSIGN(const std::string text, read_file(file));
      auto trace = parse_trace(text);
      if (!trace.ok()) return Error{trace.error().code, file + ": " + trace.error().text};
      for (const RankTrace& other : traces) {
        if (other.job != trace->job)
          return Error{Code::invalid_argument,
                       file + " is of another job than the files before it: name one job's folder"};
        if (other.rank == trace->rank)
          return Error{Code::invalid_argument,
                       file + " is of rank " + std::to_string(other.rank) + ", as one before it"};
      }
      traces.push_back(*std::move(trace));
    }
  }
  std::sort(traces.begin(), traces.end(), [](const RankTrace& a, const RankTrace& b) { return a.rank < b.rank; });
  return traces;
}

}  // namespace sluice::tools
