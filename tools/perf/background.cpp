#include "tools/perf/background.h"

#include <algorithm>

#include "base/config.h"
#include "tools/perf/machine.h"

namespace sluice::tools {
namespace {

Error bad(std::string_view text, const std::string& allowed) {
  return {Code::invalid_argument, "--beside is '" + std::string(text) +
                                      "', but must be OPERATION:BYTES:LANE, as in all_reduce:64M:bulk: " + allowed};
}

Result<const PerfTest*> find_test(std::string_view text, std::string_view word) {
  std::string names;
  for (const PerfTest& one : all_perf_tests()) {
    if (one.by_traffic) continue;  // needs a table of its own
    if (one.name == word) return &one;
    names += (names.empty() ? "" : " ") + std::string(one.name);
  }
  return bad(text, "the operation is one of " + names);
}

}  // namespace

Result<BackgroundRule> parse_background(std::string_view text) {
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos) return bad(text, "a part is missing");
  BackgroundRule rule;
  SLUICE_TRY_ASSIGN(rule.test, find_test(text, text.substr(0, first)));
  const auto bytes = parse_bytes(text.substr(first + 1, second - first - 1));
  if (!bytes.ok() || *bytes == 0) return bad(text, "the size is bytes above 0, with K, M or G");
  rule.bytes = *bytes;
  SLUICE_TRY_ASSIGN(rule.lane, parse_lane(text.substr(second + 1)));
  if (Lane plain{.name = rule.lane.name}; rule.lane == plain)
    if (const auto alike = parse_lane("lane:" + rule.lane.name); alike.ok()) rule.lane.priority = alike->priority;
  return rule;
}

std::string to_text(const BackgroundRule& rule) {
  return std::string(rule.test->name) + ":" + format_bytes(rule.bytes) + ":" + to_text(rule.lane);
}

Background::Background(const BackgroundRule& rule, Communicator communicator)
    : rule_(rule), communicator_(std::move(communicator)) {
  case_.ranks = communicator_.ranks();
  case_.bytes = rule_.bytes;
  case_.count = rule_.test->count(rule_.bytes, element_bytes(case_.type), case_.ranks);
  count_.ended_at = seconds_now();
}

Result<std::unique_ptr<Background>> Background::start(const BackgroundRule& rule, Member& member, bool windows) {
  SLUICE_TRY_ASSIGN(Communicator communicator,
                    member.world.split(0, member.world.rank(), {.lane = rule.lane, .name = "beside", .deadline = {}}));
  std::unique_ptr<Background> made(new Background(rule, std::move(communicator)));
  const Extents extents = rule.test->extents(made->case_, made->communicator_.rank());
  const std::size_t element = element_bytes(made->case_.type);
  SLUICE_TRY_ASSIGN(made->send_,
                    RankMemory::allocate(made->communicator_, std::max(extents.send * element, element), windows));
  SLUICE_TRY_ASSIGN(made->receive_,
                    RankMemory::allocate(made->communicator_, std::max(extents.receive * element, element), windows));
  std::fill_n(made->send_.data(), extents.send * element, std::byte{0});
  made->thread_ = std::thread([background = made.get()] { background->serve(); });
  return made;
}

Background::~Background() {
  if (!thread_.joinable()) return;
  communicator_.abort("the operation beside was given up");
  thread_.join();
}

void Background::serve() {
  for (bool more = true; more;) {
    Status status = run_once();
    if (status.ok()) {
      auto all = go_on();
      more = all.ok() && *all;
      status = all.status();
    }
    const std::lock_guard lock(mutex_);
    if (status.ok()) {
      count_ = {count_.operations + 1, seconds_now()};
    } else {
      status_ = status;
      more = false;
    }
  }
}

Status Background::run_once() {
  const CallOptions options;
  const PerfCall call{
      .communicator = &communicator_, .send = send_.data(), .receive = receive_.data(), .options = &options};
  std::vector<Work> works;
  rule_.test->post(case_, call, works);
  return wait_all(works);
}

Result<bool> Background::go_on() {
  const std::uint8_t mine = stop_.load(std::memory_order_relaxed) ? 1 : 0;
  std::uint8_t any = 0;
  SLUICE_TRY(communicator_.all_reduce({&mine, &any, 1, DataType::uint8}, ReduceOp::max).wait());
  return any == 0;
}

Background::Count Background::count() const {
  const std::lock_guard lock(mutex_);
  return count_;
}

Status Background::stop() {
  stop_.store(true, std::memory_order_relaxed);
  thread_.join();
  {
    const std::lock_guard lock(mutex_);
    SLUICE_TRY(status_);
  }
  return communicator_.close();
}

Status Backgrounds::start(const std::vector<BackgroundRule>& rules, Ranks& ranks, bool windows) {
  if (!rules.empty() && ranks.members().size() > 1)
    return {Code::unsupported, "--beside: the loop transport runs all ranks in one thread"};
  for (const BackgroundRule& rule : rules) {
    SLUICE_TRY_ASSIGN(auto started, Background::start(rule, ranks.first(), windows));
    all_.push_back(std::move(started));
  }
  return {};
}

Status Backgrounds::stop() {
  for (const auto& one : all_) SLUICE_TRY(one->stop());
  all_.clear();
  return {};
}

std::vector<Background::Count> Backgrounds::counts() const {
  std::vector<Background::Count> counts;
  for (const auto& one : all_) counts.push_back(one->count());
  return counts;
}

std::vector<Beside> Backgrounds::since(const std::vector<Background::Count>& before) const {
  std::vector<Beside> done;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Background::Count now = all_[i]->count();
    Beside one{.what = to_text(all_[i]->rule()), .operations = now.operations - before[i].operations};
    if (one.operations != 0)
      one.bytes_per_second =
          static_cast<double>(one.operations) * all_[i]->algorithm_bytes() / (now.ended_at - before[i].ended_at);
    done.push_back(std::move(one));
  }
  return done;
}

}  // namespace sluice::tools
