// The text form of schedules: what people read in reports and files, and what the parser reads back.
//
//   Limits  kScheduleTextMax bytes, kParsedPlacesMax places; every number is checked before it is used.
#include <charconv>

#include "comm/schedule/schedule.h"

namespace sluice {
namespace {

void append(std::string& text, Place place) {
  text += 'r';
  text += std::to_string(place.rank);
  text += '.';
  text += name(place.buffer);
  text += '.';
  text += std::to_string(place.chunk);
}

void append(std::string& text, const std::vector<Place>& places, std::string_view between) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i > 0) text += between;
    append(text, places[i]);
  }
}

void append(std::string& text, const Step& step) {
  append(text, step.from, " + ");
  text += " -> ";
  append(text, step.to, ", ");
  if (step.to.empty() || step.executor != step.to.front().rank) text += " by r" + std::to_string(step.executor);
  if (step.tree == Tree::canonical) text += " tree canonical";
}

// Reads words of one line. Every reader returns false when the text is something else.
class Line {
 public:
  explicit Line(std::string_view text) : rest_(text) {}

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }
  bool eat(std::string_view token) {
    skip_blanks();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string_view word() {
    skip_blanks();
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return found;
  }
  bool number(int& value) {
    skip_blanks();
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool place(Place& place) {
    if (!eat("r") || !number(place.rank) || !eat(".")) return false;
    if (eat("in."))
      place.buffer = Buffer::input;
    else if (eat("out."))
      place.buffer = Buffer::output;
    else if (eat("scratch."))
      place.buffer = Buffer::scratch;
    else
      return false;
    return number(place.chunk);
  }
  bool places(std::vector<Place>& places, std::string_view between) {
    places.clear();
    do {
      if (Place one; place(one))
        places.push_back(one);
      else
        return false;
    } while (eat(between));
    return true;
  }
  std::string_view rest() const { return rest_; }

 private:
  void skip_blanks() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\r'))
      rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Schedule> parse() {
    std::string name;
    ScheduleShape shape;
    SLUICE_TRY(head(name, shape));
    ScheduleBuilder builder(std::move(name), shape);
    SLUICE_TRY(body(builder));
    SLUICE_TRY_ASSIGN(Schedule schedule, std::move(builder).build());
    SLUICE_TRY(check_levels(schedule));
    return schedule;
  }

 private:
  // The next line with something in it; `#` starts a comment. False at the end.
  bool next(Line& line) {
    while (at_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', at_), text_.size());
      std::string_view found = text_.substr(at_, end - at_);
      found = found.substr(0, found.find('#'));
      at_ = end + 1;
      ++number_;
      line = Line(found);
      if (!line.at_end()) return true;
    }
    return false;
  }
  Status fault(const std::string& what) const {
    return {Code::invalid_argument, "schedule text, line " + std::to_string(number_) + ": " + what};
  }
  // What was found, short enough and safe to print.
  static std::string shown(std::string_view text) {
    std::string safe(text.substr(0, 40));
    for (char& c : safe)
      if (c < ' ' || c > '~') c = '?';
    return "'" + safe + "'";
  }

  Status head(std::string& name, ScheduleShape& shape) {
    Line line("");
    if (!next(line) || !line.eat("sluice schedule 1") || !line.at_end()) return fault("expected 'sluice schedule 1'");
    if (!next(line) || !line.eat("name ")) return fault("expected 'name WORD'");
    name = line.word();
    if (!line.at_end()) return fault("a name is one word, but there is also " + shown(line.rest()));
    if (!next(line) || !line.eat("shape "))
      return fault("expected 'shape COLLECTIVE ranks N chunks N root N scratch N'");
    const std::string_view word = line.word();
    const std::optional<Collective> collective = parse_collective(word);
    if (!collective) return fault("unknown collective " + shown(word));
    shape.collective = *collective;
    if (!line.eat("ranks ") || !line.number(shape.ranks) || !line.eat("chunks ") || !line.number(shape.chunks) ||
        !line.eat("root ") || !line.number(shape.root) || !line.eat("scratch ") || !line.number(shape.scratch_chunks) ||
        !line.at_end())
      return fault("expected 'shape COLLECTIVE ranks N chunks N root N scratch N'");
    if (shape.ranks > kRanksMax || shape.chunks > kChunksMax || shape.scratch_chunks > kChunksMax)
      return fault("at most " + std::to_string(kRanksMax) + " ranks and " + std::to_string(kChunksMax) +
                   " chunks or scratch chunks");
    const std::int64_t places =
        std::int64_t{shape.ranks} * (std::int64_t{shape.input_chunks()} + shape.output_chunks() + shape.scratch_chunks);
    if (places > kParsedPlacesMax)
      return fault(std::to_string(places) + " places are more than the " + std::to_string(kParsedPlacesMax) +
                   " that text may have");
    return {};
  }

  Status body(ScheduleBuilder& builder) {
    Line line("");
    while (next(line)) {
      if (!line.eat("{")) {
        SLUICE_TRY(step(line, builder));
        continue;
      }
      if (!line.at_end()) return fault("'{' stands alone on its line");
      Status inner;
      builder.together([&] { inner = moment(builder); });
      if (!inner.ok()) return inner;
    }
    return {};
  }

  Status moment(ScheduleBuilder& builder) {
    Line line("");
    while (next(line)) {
      if (line.eat("}")) return line.at_end() ? Status() : fault("'}' stands alone on its line");
      if (line.eat("{")) return fault("a moment can't hold another");
      SLUICE_TRY(step(line, builder));
    }
    return fault("a moment is not closed: '}' is missing");
  }

  Status step(Line& line, ScheduleBuilder& builder) {
    int level = -1;
    if (line.eat("@") && !line.number(level)) return fault("expected a level after '@'");
    if (!line.places(from_, "+") || !line.eat("->") || !line.places(to_, ","))
      return fault("expected 'PLACE + ... -> PLACE, ...' with places like r0.in.0, r1.out.2, r2.scratch.0, at " +
                   shown(line.rest()));
    std::optional<Rank> executor;
    if (Rank rank = 0; line.eat("by")) {
      if (!line.eat("r") || !line.number(rank)) return fault("expected a rank after 'by', like r0");
      executor = rank;
    }
    Tree tree = Tree::chain;
    if (line.eat("tree")) {
      if (line.eat("canonical"))
        tree = Tree::canonical;
      else if (!line.eat("chain"))
        return fault("a tree is 'canonical' or 'chain'");
    }
    if (!line.at_end()) return fault("what is " + shown(line.rest()) + " at the end?");
    builder.combine(from_, to_, tree, executor);
    given_.push_back({level, number_});
    return {};
  }

  // A level may be left out; one that is given must be the one that follows from the steps.
  Status check_levels(const Schedule& schedule) {
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (given_[i].level < 0 || given_[i].level == schedule.steps[i].level) continue;
      number_ = given_[i].line;
      return fault("the step says level " + std::to_string(given_[i].level) + " but what it touches makes it level " +
                   std::to_string(schedule.steps[i].level) + "; leave '@' out to have it worked out");
    }
    return {};
  }

  struct Given {
    int level;
    int line;
  };
  std::string_view text_;
  std::size_t at_ = 0;
  int number_ = 0;
  std::vector<Place> from_;
  std::vector<Place> to_;
  std::vector<Given> given_;
};

}  // namespace

std::string print(Place place) {
  std::string text;
  append(text, place);
  return text;
}

std::string print(const Step& step) {
  std::string text;
  append(text, step);
  return text;
}

std::string print(const Schedule& schedule) {
  const ScheduleShape& shape = schedule.shape;
  std::string text = "sluice schedule 1\nname " + schedule.name + "\nshape " + std::string(name(shape.collective)) +
                     " ranks " + std::to_string(shape.ranks) + " chunks " + std::to_string(shape.chunks) + " root " +
                     std::to_string(shape.root) + " scratch " + std::to_string(shape.scratch_chunks) + "\n";
  if (schedule.only) text += "# only the steps that touch r" + std::to_string(*schedule.only) + "\n";
  const std::vector<Step>& steps = schedule.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool with_last = i > 0 && steps[i - 1].moment == steps[i].moment;
    const bool with_next = i + 1 < steps.size() && steps[i + 1].moment == steps[i].moment;
    if (with_next && !with_last) text += "{\n";
    text += '@';
    text += std::to_string(steps[i].level);
    text += ' ';
    append(text, steps[i]);
    text += '\n';
    if (with_last && !with_next) text += "}\n";
  }
  return text;
}

Result<Schedule> parse_schedule(std::string_view text) {
  if (text.size() > kScheduleTextMax)
    return Error{Code::invalid_argument, "schedule text of " + std::to_string(text.size()) + " bytes is longer than " +
                                             std::to_string(kScheduleTextMax)};
  return Parser(text).parse();
}

}  // namespace sluice
