#include "comm/tune/machine_file.h"

#include <algorithm>
#include <charconv>

namespace sluice {
namespace {

constexpr std::string_view kTitle = "sluice tuning 1";
constexpr std::array<std::string_view, kLinkKinds> kLinkNames{"threads", "processes", "tcp"};
constexpr std::size_t kDescriptionMax = 256;
constexpr std::size_t kShownMax = 40;  // of a wrong value, in a message

struct Bounds {
  double least;
  double most;
  std::string_view text;
};
constexpr Bounds kSeconds{1e-9, 3600, "between 1e-9 and 3600"};
constexpr Bounds kRate{1e3, 1e15, "between 1e3 and 1e15"};
constexpr Bounds kSize{1, 0x1p40, "a whole number between 1 and 2^40"};
constexpr Bounds kRanks{2, 4096, "a whole number between 2 and 4096"};

// The shortest text that reads back to the same value.
std::string text_of(double value) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), error == std::errc() ? end : digits.data()};
}

std::string hex_of(std::uint64_t value) {
  std::string text(16, '0');
  for (std::size_t i = 16; i-- > 0; value >>= 4) text[i] = "0123456789abcdef"[value & 15];
  return text;
}

// What may stand between quotes: printable, no quotes.
std::string plain(std::string_view text) {
  std::string result(text.substr(0, kDescriptionMax));
  for (char& one : result)
    if (one < ' ' || one > '~' || one == '"') one = ' ';
  return result;
}

bool is_plain(std::string_view text) { return plain(text) == text; }

// Words of one line, and errors that name it.
class Line {
 public:
  Line(std::string_view text, int number) : rest_(text), number_(number) {}

  std::string_view word() {
    const std::string_view found = rest_.substr(0, rest_.find(' '));
    rest_.remove_prefix(std::min(rest_.size(), found.size() + 1));
    return found;
  }
  bool empty() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

  Error bad(std::string_view field, std::string_view value, std::string_view allowed) const {
    return {Code::invalid_argument, "line " + std::to_string(number_) + ": " + std::string(field) + " is '" +
                                        plain(value.substr(0, kShownMax)) + "', but must be " + std::string(allowed)};
  }

  template <typename Number>
  Result<Number> number(std::string_view field, const Bounds& bounds) {
    const std::string_view text = word();
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    const auto wide = static_cast<double>(value);
    if (!whole || !(wide >= bounds.least && wide <= bounds.most)) return bad(field, text, bounds.text);
    return value;
  }
  // `field VALUE`
  Result<double> named(std::string_view field, const Bounds& bounds) {
    if (const std::string_view found = word(); found != field) return bad("a field", found, field);
    return number<double>(field, bounds);
  }

 private:
  std::string_view rest_;
  int number_;
};

Status read_machine(Line& line, MachineFile& file) {
  if (const std::string_view found = line.word(); found != "machine") return line.bad("the keyword", found, "machine");
  const std::string_view text = line.word();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), file.machine, 16);
  if (error != std::errc() || end != text.data() + text.size() || text != hex_of(file.machine))
    return line.bad("machine", text, "16 hexadecimal digits");
  const std::string_view quoted = line.rest();
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"' || quoted.size() > kDescriptionMax + 2 ||
      !is_plain(quoted.substr(1, quoted.size() - 2)))
    return line.bad("the machine's description", quoted, "printable text in quotes, 256 characters at most");
  file.description = std::string(quoted.substr(1, quoted.size() - 2));
  return {};
}

Result<LinkKind> read_link(Line& line, MachineFile& file) {
  const std::string_view word = line.word();
  const auto kind = parse_link_kind(word);
  if (!kind) return line.bad("link", word, "threads, processes or tcp");
  if (file.link(*kind)) return line.bad("link", word, "there only once");
  LinkMeasures link;
  SLUICE_TRY_ASSIGN(link.latency_seconds, line.named("latency_seconds", kSeconds));
  SLUICE_TRY_ASSIGN(link.bytes_per_second, line.named("bytes_per_second", kRate));
  SLUICE_TRY_ASSIGN(link.combine_bytes_per_second, line.named("combine_bytes_per_second", kRate));
  if (!line.empty()) return line.bad("the end of the line", line.rest(), "empty");
  file.link(*kind) = std::move(link);
  return *kind;
}

Result<TimeCurve> read_curve(Line& line) {
  TimeCurve curve;
  const std::string_view word = line.word();
  const auto collective = parse_collective(word);
  if (!collective) return line.bad("collective", word, "the name of one");
  SLUICE_TRY_ASSIGN(curve.ranks, line.number<int>("ranks", kRanks));
  const std::string_view algorithm = line.word();
  curve.algorithm = find_algorithm(*collective, algorithm);
  if (curve.algorithm == nullptr)
    return line.bad("algorithm", algorithm, "one that this release offers for " + std::string(word));
  while (!line.empty() || curve.points.empty()) {
    if (curve.points.size() == kTimePointsMax) return line.bad("more points", line.rest(), "64 in all at most");
    TimePoint point;
    SLUICE_TRY_ASSIGN(point.bytes, line.number<std::uint64_t>("bytes", kSize));
    if (!curve.points.empty() && point.bytes <= curve.points.back().bytes)
      return line.bad("bytes", std::to_string(point.bytes), "more than at the point before");
    SLUICE_TRY_ASSIGN(point.seconds, line.number<double>("seconds", kSeconds));
    curve.points.push_back(point);
  }
  return curve;
}

Status add_curve(Line& line, LinkMeasures& link) {
  SLUICE_TRY_ASSIGN(TimeCurve curve, read_curve(line));
  const std::string_view algorithm = curve.algorithm->name;
  if (link.curves.size() == kTimeCurvesMax) return line.bad("algorithm", algorithm, "among the first 4096 of a link");
  for (const TimeCurve& one : link.curves)
    if (one.algorithm == curve.algorithm && one.ranks == curve.ranks)
      return line.bad("algorithm", algorithm, "there once for so many ranks");
  if (!link.curves.empty() && link.curves.back().algorithm->collective > curve.algorithm->collective)
    return line.bad("collective", name(curve.algorithm->collective), "in order, those of one together");
  link.curves.push_back(std::move(curve));
  return {};
}

void print_link(LinkKind kind, const LinkMeasures& link, std::string& out) {
  out += "link " + std::string(name(kind)) + " latency_seconds " + text_of(link.latency_seconds) +
         " bytes_per_second " + text_of(link.bytes_per_second) + " combine_bytes_per_second " +
         text_of(link.combine_bytes_per_second) + "\n";
  for (const TimeCurve& curve : link.curves) {
    out += "times " + std::string(name(curve.algorithm->collective)) + " " + std::to_string(curve.ranks) + " " +
           std::string(curve.algorithm->name);
    for (const TimePoint& point : curve.points) out += " " + std::to_string(point.bytes) + " " + text_of(point.seconds);
    out += "\n";
  }
}

}  // namespace

std::string_view name(LinkKind kind) { return kLinkNames.at(static_cast<std::size_t>(kind)); }

std::optional<LinkKind> parse_link_kind(std::string_view word) {
  for (std::size_t i = 0; i < kLinkNames.size(); ++i)
    if (kLinkNames[i] == word) return static_cast<LinkKind>(i);
  return std::nullopt;
}

std::span<const TimeCurve> LinkMeasures::of(Collective collective) const {
  const auto is_before = [&](const TimeCurve& one) { return one.algorithm->collective < collective; };
  const auto is_not_after = [&](const TimeCurve& one) { return one.algorithm->collective <= collective; };
  const auto first = std::partition_point(curves.begin(), curves.end(), is_before);
  return {first, std::partition_point(first, curves.end(), is_not_after)};
}

std::string print(const MachineFile& file) {
  std::string out =
      std::string(kTitle) + "\nmachine " + hex_of(file.machine) + " \"" + plain(file.description) + "\"\n";
  for (std::size_t i = 0; i < file.links.size(); ++i)
    if (file.links[i]) print_link(static_cast<LinkKind>(i), *file.links[i], out);
  return out + "end\n";
}

Result<MachineFile> parse_machine_file(std::string_view text) {
  if (text.size() > kMachineFileBytesMax)
    return Error{Code::invalid_argument, "it has more than " + std::to_string(kMachineFileBytesMax) + " bytes"};
  MachineFile file;
  std::optional<LinkKind> open;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line_text = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line_text.size() + 1, text.size()));
    Line line(line_text, number);
    if (number == 1) {
      if (line_text != kTitle) return line.bad("the title", line_text, "'" + std::string(kTitle) + "'");
      continue;
    }
    if (number == 2) {
      SLUICE_TRY(read_machine(line, file));
      continue;
    }
    const std::string_view keyword = line.word();
    if (keyword == "end" && line.empty()) {
      if (!text.empty()) return line.bad("what follows the end", text, "empty");
      return file;
    }
    if (keyword == "link") {
      SLUICE_TRY_ASSIGN(open, read_link(line, file));
    } else if (keyword == "times" && open) {
      SLUICE_TRY(add_curve(line, *file.link(*open)));
    } else {
      return line.bad("the keyword", keyword, "link, times (after a link) or end");
    }
  }
  return Error{Code::invalid_argument, "it is cut off: its last line must be 'end'"};
}

}  // namespace sluice
