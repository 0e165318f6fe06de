// Ranks that leave and ranks that vanish, in random numbers, at random times, while everybody floods: who stays hears of each
// exactly once, as what it was, and the tree still carries every notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/rng.h"
#include "tests/comm/bootstrap/job.h"

namespace sluice::test {
namespace {

std::multiset<Rank> about(const std::vector<Ear::Heard>& heard, NoticeKind kind) {
  std::multiset<Rank> ranks;
  for (const Ear::Heard& one : heard)
    if (one.notice.kind == kind) ranks.insert(one.notice.world_rank);
  return ranks;
}

enum class Way { leave, vanish };

class Mending : public testing::TestWithParam<std::uint64_t> {};  // seed
INSTANTIATE_TEST_SUITE_P(Seeds, Mending, testing::Range<std::uint64_t>(1, 9));

// Whoever stays has heard of each of `gone` once, and of nobody else.
void expect_heard(const Job& job, const std::multiset<Rank>& gone, Way way, std::uint64_t seed) {
  const NoticeKind expected = way == Way::leave ? NoticeKind::peer_left : NoticeKind::peer_lost;
  const NoticeKind other = way == Way::leave ? NoticeKind::peer_lost : NoticeKind::peer_left;
  for (Rank rank = 0; rank < static_cast<Rank>(job.ears.size()); ++rank) {
    if (gone.contains(rank)) continue;
    const Ear& ear = *job.ears[static_cast<std::size_t>(rank)];
    ear.wait([&](const std::vector<Ear::Heard>& all) { return about(all, expected).size() >= gone.size(); });
    EXPECT_EQ(about(ear.heard(), expected), gone) << "seed " << seed << " rank " << rank;
    EXPECT_TRUE(about(ear.heard(), other).empty()) << "seed " << seed << " rank " << rank;
  }
}

// About half the ranks go within 30 ms.
void run(std::uint64_t seed, Way way) {
  Rng rng(seed);
  const bool tcp = rng.chance(0.5);
  const int ranks = 3 + static_cast<int>(rng.below(12));
  Job job = join_threads(
      ranks, tcp ? std::function<void(JoinPlan&)>(own_host) : [](JoinPlan&) {});
  ASSERT_TRUE(job.whole());
  const Rank last = static_cast<Rank>(rng.below(static_cast<std::uint64_t>(ranks)));  // somebody always stays
  std::multiset<Rank> gone;
  std::vector<std::thread> going;
  for (Rank rank = 0; rank < ranks; ++rank) {
    if (rank == last || rng.chance(0.5)) continue;
    gone.insert(rank);
    going.emplace_back([way, &control = job.controls[static_cast<std::size_t>(rank)],
                        when = std::chrono::milliseconds(rng.below(30))] {
      std::this_thread::sleep_for(when);
      if (way == Way::leave) control->leave();
      control.reset();
    });
  }
  for (std::thread& thread : going) thread.join();
  expect_heard(job, gone, way, seed);
  for (Rank from = 0; from < ranks; ++from)
    if (!gone.contains(from))
      job.controls[static_cast<std::size_t>(from)]->flood(notice_of(from, "still here " + std::to_string(from)));
  for (Rank to = 0; to < ranks; ++to)
    for (Rank from = 0; from < ranks; ++from) {
      if (from == to || gone.contains(from) || gone.contains(to)) continue;
      const std::string text = "still here " + std::to_string(from);
      EXPECT_TRUE(job.ears[static_cast<std::size_t>(to)]->wait_for_text(text))
          << "seed " << seed << ": " << from << " to " << to;
      EXPECT_EQ(job.ears[static_cast<std::size_t>(to)]->times(text), 1);
    }
  job.leave_all();
}

TEST_P(Mending, RanksThatLeaveAtRandomTimesAreFarewellsAndNothingElse) { run(GetParam(), Way::leave); }

TEST_P(Mending, RanksThatVanishAtRandomTimesAreLossesAndNothingElse) { run(GetParam(), Way::vanish); }

}  // namespace
}  // namespace sluice::test
