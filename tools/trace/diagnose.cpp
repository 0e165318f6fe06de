#include "tools/trace/diagnose.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace sluice::tools {
namespace {

constexpr std::size_t kEvidenceMax = 16;

const RankTrace* find(const std::vector<RankTrace>& traces, Rank rank) {
  const auto at = std::find_if(traces.begin(), traces.end(), [&](const RankTrace& one) { return one.rank == rank; });
  return at == traces.end() ? nullptr : &*at;
}

// One wait: a rank, in an operation, for another.
struct Wait {
  Rank from = 0;
  Rank to = 0;
  std::uint64_t communicator = 0;
  std::string communicator_name;
  std::string kind;
  std::uint64_t sequence = 0;
  double seconds = 0;

  std::string text() const {
    const std::string number = sequence == 0 ? "" : " #" + std::to_string(sequence);
    return fmt::format("rank {} waits for rank {} in {}{} on '{}' ({:.1f} s without progress)", from, to, kind, number,
                       communicator_name, seconds);
  }
};

std::vector<Wait> waits_of(const RankTrace& trace) {
  std::vector<Wait> waits;
  for (const TracedCommunicator& one : trace.communicators)
    for (const TracedOperation& operation : one.unfinished)
      if (const Rank to = one.world_rank(operation.waits_for); to >= 0 && to != trace.rank)
        waits.push_back(
            {trace.rank, to, one.id, one.name, operation.kind, operation.sequence, operation.stuck_seconds});
  // What is stuck longest began it.
  std::stable_sort(waits.begin(), waits.end(), [](const Wait& a, const Wait& b) { return a.seconds > b.seconds; });
  return waits;
}

// Whoever has most votes; of equal ones the lowest.
std::optional<std::pair<Rank, int>> most_voted(const std::map<Rank, int>& votes) {
  std::optional<std::pair<Rank, int>> most;
  for (const auto& [rank, count] : votes)
    if (!most || count > most->second) most = {rank, count};
  return most;
}

std::optional<Diagnosis> by_death(const std::vector<RankTrace>& traces) {
  std::map<Rank, int> votes;
  Diagnosis found;
  for (const RankTrace& trace : traces)
    for (const Rank lost : trace.lost) {
      ++votes[lost];
      if (found.evidence.size() < kEvidenceMax)
        found.evidence.push_back(fmt::format("rank {} reports rank {} as lost", trace.rank, lost));
    }
  const auto most = most_voted(votes);
  if (!most) return std::nullopt;
  // A dead rank reports nobody. Who reports the ranks that report it lives on the other side of a broken network.
  const RankTrace* const itself = find(traces, most->first);
  const bool accuses = itself != nullptr && !itself->lost.empty();
  const auto accuses_a_reporter = [&] {
    return std::any_of(traces.begin(), traces.end(), [&](const RankTrace& one) {
      const auto names = [](const RankTrace& who, Rank whom) {
        return std::find(who.lost.begin(), who.lost.end(), whom) != who.lost.end();
      };
      return names(one, most->first) && names(*itself, one.rank);
    });
  };
  if (accuses && most->second == 1 && accuses_a_reporter()) {
    found.kind = Diagnosis::Kind::network;
    found.text = fmt::format("rank {} on {} and rank {} report each other as lost: the network between them",
                             itself->rank, itself->host, itself->lost.front());
    return found;
  }
  found.kind = Diagnosis::Kind::lost;
  found.culprit = most->first;
  found.text = fmt::format("rank {} was lost: {} of {} ranks that wrote a trace report it{}", most->first, most->second,
                           traces.size(), accuses ? ", and it lost them: its machine or its network" : "");
  return found;
}

std::optional<Diagnosis> by_divergence(const std::vector<RankTrace>& traces) {
  for (const RankTrace& trace : traces)
    for (const TracedCommunicator& one : trace.communicators)
      if (one.error.starts_with("mismatch:")) {
        Diagnosis found{.kind = Diagnosis::Kind::diverged,
                        .text = fmt::format("ranks disagree on '{}': {}", one.name, one.error)};
        for (const RankTrace& other : traces)
          for (const TracedCommunicator& same : other.communicators)
            if (same.id == one.id)
              found.evidence.push_back(fmt::format("rank {} posted {} collectives on it", other.rank, same.posted));
        return found;
      }
  return std::nullopt;
}

// Where the waits end that begin at a rank.
struct End {
  Diagnosis::Kind kind = Diagnosis::Kind::nothing;
  Rank rank = -1;
  std::vector<Wait> path;
};

End follow(const std::vector<RankTrace>& traces, const Wait& first) {
  End end;
  std::set<Rank> seen{first.from};
  Wait wait = first;
  while (true) {
    end.path.push_back(wait);
    end.rank = wait.to;
    const RankTrace* const next = find(traces, wait.to);
    if (next == nullptr) return end.kind = Diagnosis::Kind::silent, end;
    if (!seen.insert(wait.to).second) return end.kind = Diagnosis::Kind::cycle, end;
    const std::vector<Wait> waits = waits_of(*next);
    if (waits.empty()) return end.kind = Diagnosis::Kind::absent, end;
    // In the same operation if it is in it, else in what holds it up.
    const auto same = std::find_if(waits.begin(), waits.end(), [&](const Wait& one) {
      return one.communicator == wait.communicator && one.sequence == wait.sequence;
    });
    wait = same != waits.end() ? *same : waits.front();
  }
}

std::string text_of(const End& end, int voters, int ranks) {
  const Wait& last = end.path.back();
  const std::string number = last.sequence == 0 ? "" : " #" + std::to_string(last.sequence);
  switch (end.kind) {
    case Diagnosis::Kind::silent:
      return fmt::format(
          "rank {} says nothing, and {} of {} ranks wait for it in the end: it is stopped, or its machine hangs",
          end.rank, voters, ranks);
    case Diagnosis::Kind::absent:
      return fmt::format("rank {} is not in {}{} on '{}', in which {} of {} ranks wait for it in the end", end.rank,
                         last.kind, number, last.communicator_name, voters, ranks);
    default:
      return fmt::format("{} of {} ranks wait in a circle: calls that block were made in opposite orders", voters,
                         ranks);
  }
}

std::optional<Diagnosis> by_waiting(const std::vector<RankTrace>& traces) {
  std::map<std::pair<Diagnosis::Kind, Rank>, std::vector<End>> ends;
  for (const RankTrace& trace : traces)
    if (const std::vector<Wait> waits = waits_of(trace); !waits.empty()) {
      End end = follow(traces, waits.front());
      ends[{end.kind, end.kind == Diagnosis::Kind::cycle ? -1 : end.rank}].push_back(std::move(end));
    }
  const std::vector<End>* most = nullptr;
  for (const auto& [where, here] : ends)
    if (most == nullptr || here.size() > most->size()) most = &here;
  if (most == nullptr) return std::nullopt;
  const End& end = most->front();
  Diagnosis found{.kind = end.kind, .text = text_of(end, static_cast<int>(most->size()), traces.front().ranks)};
  if (end.kind != Diagnosis::Kind::cycle) found.culprit = end.rank;
  for (const Wait& wait : end.path)
    if (found.evidence.size() < kEvidenceMax) found.evidence.push_back(wait.text());
  return found;
}

}  // namespace

std::string_view name(Diagnosis::Kind kind) {
  switch (kind) {
    case Diagnosis::Kind::nothing: return "nothing";
    case Diagnosis::Kind::lost: return "lost";
    case Diagnosis::Kind::network: return "network";
    case Diagnosis::Kind::diverged: return "diverged";
    case Diagnosis::Kind::silent: return "silent";
    case Diagnosis::Kind::absent: return "absent";
    case Diagnosis::Kind::cycle: return "cycle";
  }
  return "?";
}

Diagnosis diagnose(const std::vector<RankTrace>& traces) {
  if (const auto found = by_death(traces)) return *found;
  if (const auto found = by_divergence(traces)) return *found;
  if (const auto found = by_waiting(traces)) return *found;
  return {.text = "no rank waits for another, none is lost and none disagrees"};
}

}  // namespace sluice::tools
