// A job of processes, each of which joins as a rank, tells what it hears and obeys its parent.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/comm/bootstrap/job.h"
#include "tests/comm/bootstrap/processes.h"

namespace sluice::test {

inline std::int64_t now_ns() { return RealClock::instance().now().count(); }

// Joins, then tells of every notice, and obeys: 'f' floods a notice, 'l' leaves and ends, 'x' ends without a word.
inline int rank_main(int stream, JoinPlan plan) {
  const Rank rank = plan.rank;
  auto joined = join_by_plan(std::move(plan));
  if (!joined.ok()) {
    tell(stream, "failed " + joined.error().text);
    return 1;
  }
  Control& control = **joined;
  control.on_notice([stream](const Notice& notice) {
    if (notice.kind == NoticeKind::peer_left) return;
    const std::string kind = notice.kind == NoticeKind::peer_lost ? "lost " : "heard ";
    tell(stream, kind + std::to_string(notice.world_rank) + " " + std::to_string(now_ns()) + " " + notice.text);
  });
  tell(stream, "joined");
  char command = 0;
  while (::read(stream, &command, 1) == 1) {
    if (command == 'f') control.flood(notice_of(rank, "from " + std::to_string(rank)));
    if (command == 'l') control.leave();
    if (command != 'f') return 0;
  }
  return 2;
}

struct RankProcesses {
  // `plan` runs in the child.
  RankProcesses(int ranks, const std::function<JoinPlan(Rank)>& plan) {
    for (Rank rank = 0; rank < ranks; ++rank)
      all.emplace_back([&](int stream) { return rank_main(stream, plan(rank)); });
    for (Process& process : all) EXPECT_EQ(process.line(), "joined");
  }
  // Every other rank says that exactly `lost` are lost. Returns the largest time from `since`, in seconds.
  double expect_losses(const std::set<Rank>& lost, std::int64_t since) {
    std::set<Rank> others;
    for (Rank rank = 0; rank < static_cast<Rank>(all.size()); ++rank)
      if (!lost.contains(rank)) others.insert(rank);
    return expect_losses(lost, others, since);
  }
  double expect_losses(const std::set<Rank>& lost, const std::set<Rank>& others, std::int64_t since) {
    double latest = 0;
    for (const Rank rank : others) {
      std::set<Rank> told;
      while (told.size() < lost.size()) {
        const std::string line = all[static_cast<std::size_t>(rank)].line(5s);
        int about = -1;
        long long when = 0;
        if (std::sscanf(line.c_str(), "lost %d %lld", &about, &when) != 2) {
          ADD_FAILURE() << "rank " << rank << " said '" << line << "'";
          break;
        }
        told.insert(about);
        latest = std::max(latest, static_cast<double>(when - since) * 1e-9);
      }
      EXPECT_EQ(told, lost) << "rank " << rank;
    }
    return latest;
  }
  void expect_flood_from(Rank from, const std::set<Rank>& gone) {
    all[static_cast<std::size_t>(from)].command('f');
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (static_cast<Rank>(rank) == from || gone.contains(static_cast<Rank>(rank))) continue;
      const std::string line = all[rank].line(5s);
      EXPECT_TRUE(line.starts_with("heard " + std::to_string(from) + " "))
          << "rank " << rank << " said '" << line << "'";
    }
  }
  void expect_silence(const std::set<Rank>& gone, Nanoseconds time) {
    std::this_thread::sleep_for(time);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      EXPECT_EQ(gone.contains(static_cast<Rank>(rank)) ? "" : all[rank].line(1ms), "") << "rank " << rank;
  }
  void leave_all(const std::set<Rank>& gone) {
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      if (!gone.contains(static_cast<Rank>(rank))) all[rank].command('l');
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      if (gone.contains(static_cast<Rank>(rank))) continue;
      EXPECT_EQ(all[rank].line(), "") << "rank " << rank << " heard something while all left";
      EXPECT_EQ(all[rank].wait(), 0) << "rank " << rank;
    }
  }

  std::vector<Process> all;
};

}  // namespace sluice::test
