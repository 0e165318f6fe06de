#include "tools/trace/clocks.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string_view>
#include <utility>

namespace sluice::tools {
namespace {

// The earliest that a host posted an operation is no bound, the latest is; of ends it is the other way.
struct Span {
  std::int64_t last_posted = INT64_MIN;
  std::int64_t first_ended = INT64_MAX;
};
using Operation = std::pair<std::uint64_t, std::uint64_t>;  // communicator, number
using Spans = std::map<Operation, Span>;

struct Bounds {
  std::int64_t least = INT64_MIN;
  std::int64_t most = INT64_MAX;
};

bool joins_all(std::string_view kind) {
  constexpr std::array<std::string_view, 5> kKinds{"all_reduce", "all_gather", "all_to_all", "reduce_scatter",
                                                   "barrier"};
  return std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
}

// Of one host, with its own clock. An operation that carried nothing joined nobody.
void add_spans(const RankTrace& trace, Spans& spans) {
  for (const TracedEvent& event : trace.events) {
    const TracedCommunicator* const communicator = trace.communicator(event.communicator);
    if (event.what != "done" || event.bytes == 0 || !joins_all(event.kind) || communicator == nullptr) continue;
    Span& span = spans[{communicator->id, event.sequence}];
    span.last_posted = std::max(span.last_posted, event.posted_ns);
    span.first_ended = std::min(span.first_ended, event.at_ns);
  }
}

// How far `there` may be ahead of `here`.
Bounds difference(const Spans& here, const Spans& there) {
  Bounds ahead;
  for (const auto& [operation, mine] : here) {
    const auto at = there.find(operation);
    if (at == there.end()) continue;
    ahead.most = std::min(ahead.most, at->second.first_ended - mine.last_posted);
    ahead.least = std::max(ahead.least, at->second.last_posted - mine.first_ended);
  }
  return ahead;
}

void shift(RankTrace& trace, std::int64_t by) {
  trace.written_ns -= by;
  for (TracedEvent& event : trace.events) {
    event.at_ns -= by;
    event.posted_ns -= by;
  }
  for (TracedCommunicator& communicator : trace.communicators)
    for (TracedOperation& operation : communicator.unfinished) operation.posted_ns -= by;
}

// Clocks that are a year apart are not clocks of one job.
constexpr std::int64_t kAheadMax = std::int64_t{365} * 24 * 3600 * 1'000'000'000;
bool is_believable(const Bounds& ahead) {
  const auto near = [](std::int64_t ns) { return ns > -kAheadMax && ns < kAheadMax; };
  return near(ahead.least) && near(ahead.most);
}

ClockOfHost judge(const std::string& host, const Bounds& ahead) {
  const std::int64_t doubt =
      std::abs(ahead.most - ahead.least) / 2;  // bounds that contradict: a clock was set meanwhile
  const bool may_agree = ahead.least <= 0 && ahead.most >= 0;
  return {.host = host, .ahead_ns = may_agree ? 0 : ahead.least + (ahead.most - ahead.least) / 2, .doubt_ns = doubt};
}

}  // namespace

std::vector<ClockOfHost> align_clocks(std::vector<RankTrace>& traces) {
  std::map<std::string, Spans> waiting;
  for (const RankTrace& trace : traces) add_spans(trace, waiting[trace.host]);
  std::vector<ClockOfHost> clocks{{.host = traces.front().host, .doubt_ns = 0}};
  Spans known = std::move(waiting[clocks[0].host]);  // in the first host's time
  waiting.erase(clocks[0].host);
  // A host may share operations only with one that was not there at first.
  for (bool found = true; found;) {
    found = false;
    for (auto at = waiting.begin(); at != waiting.end();) {
      const Bounds ahead = difference(known, at->second);
      if (!is_believable(ahead)) {
        ++at;
        continue;
      }
      clocks.push_back(judge(at->first, ahead));
      for (RankTrace& trace : traces)
        if (trace.host == at->first) {
          shift(trace, clocks.back().ahead_ns);
          add_spans(trace, known);
        }
      at = waiting.erase(at);
      found = true;
    }
  }
  for (const auto& [host, spans] : waiting) clocks.push_back({.host = host});
  return clocks;
}

}  // namespace sluice::tools
