#include "comm/executor/shrink.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace sluice::detail {
namespace {

enum class Word : std::uint32_t { proposal = 0, decision = 1 };

// word, then world ranks, as 32-bit numbers.
std::vector<std::byte> encode(Word word, const std::set<Rank>& lost) {
  std::vector<std::uint32_t> numbers{static_cast<std::uint32_t>(word)};
  for (const Rank rank : lost) numbers.push_back(static_cast<std::uint32_t>(rank));
  std::vector<std::byte> bytes(numbers.size() * sizeof(std::uint32_t));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::optional<std::pair<Word, std::set<Rank>>> decode(std::span<const std::byte> bytes) {
  if (bytes.empty() || bytes.size() % sizeof(std::uint32_t) != 0) return std::nullopt;
  std::vector<std::uint32_t> numbers(bytes.size() / sizeof(std::uint32_t));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  if (numbers[0] > 1) return std::nullopt;
  std::set<Rank> lost;
  for (std::size_t i = 1; i < numbers.size(); ++i) lost.insert(static_cast<Rank>(numbers[i]));
  return std::pair(static_cast<Word>(numbers[0]), lost);
}

std::string list(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text;
}

}  // namespace

void ShrinkTable::on_notice(const Notice& notice) {
  const auto word = decode(notice.payload);
  if (!word) return;
  const std::lock_guard lock(mutex_);
  Votes& votes = votes_[notice.communicator];
  if (word->first == Word::decision)
    votes.decided = word->second;
  else
    votes.said[notice.world_rank] = word->second;
  changed_.notify_all();
}

void ShrinkTable::on_change() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

Result<std::set<Rank>> ShrinkTable::agree(Control& control, const Vote& vote,
                                          const std::function<std::set<Rank>()>& known_lost) {
  const auto tell = [&](Word word, const std::set<Rank>& lost) {
    control.flood({NoticeKind::shrink, vote.communicator, control.rank(), Code::ok, {}, encode(word, lost)});
  };
  const Nanoseconds until = RealClock::instance().now() + vote.deadline;
  std::set<Rank> mine;
  bool told = false;
  std::unique_lock lock(mutex_);
  while (true) {
    Votes& votes = votes_[vote.communicator];
    std::set<Rank> lost = known_lost();
    for (const auto& [rank, said] : votes.said) lost.insert(said.begin(), said.end());
    if (votes.decided) lost = *votes.decided;
    if (lost.contains(control.rank()))
      return Error{Code::aborted, "the other ranks take world rank " + std::to_string(control.rank()) + " for lost"};
    if (votes.decided) return lost;
    if (!told || lost != mine) tell(Word::proposal, lost);
    told = true;
    mine = lost;

    std::vector<Rank> silent;
    for (const Rank member : vote.members)
      if (member != control.rank() && !lost.contains(member) &&
          (!votes.said.contains(member) || votes.said.at(member) != lost))
        silent.push_back(member);
    if (silent.empty()) {
      votes.decided = lost;
      tell(Word::decision, lost);
      return lost;
    }
    if (RealClock::instance().now() >= until)
      return Error{Code::timeout, "shrink: no vote from world rank " + list(silent) + " before the deadline"};
    changed_.wait_for(lock, std::chrono::milliseconds(50));
  }
}

}  // namespace sluice::detail
