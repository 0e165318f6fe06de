// Notices of a loop world: who hears what, in which order, and what a loss or a goodbye changes.
#include "comm/bootstrap/loop_control.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

struct Heard {
  Rank by;
  NoticeKind kind;
  Rank about;
  std::string text;
  bool operator==(const Heard&) const = default;
};

struct LoopWorld {
  explicit LoopWorld(int ranks) : controls(ranks) {
    for (Rank rank = 0; rank < ranks; ++rank) {
      members.push_back(controls.take(rank));
      members.back()->on_notice([this, rank](const Notice& notice) {
        heard.push_back({rank, notice.kind, notice.world_rank, notice.text});
      });
    }
  }
  LoopControls controls;
  std::vector<std::unique_ptr<Control>> members;
  std::vector<Heard> heard;
};

Notice abort_notice(Rank about, std::string text) {
  Notice notice;
  notice.world_rank = about;
  notice.text = std::move(text);
  return notice;
}

TEST(LoopControls, AFloodReachesEveryOtherRankOnceAndOnlyWhenDelivered) {
  LoopWorld world(3);
  world.members[1]->flood(abort_notice(1, "a"));
  world.members[0]->flood(abort_notice(0, "b"));
  EXPECT_TRUE(world.heard.empty());
  EXPECT_EQ(world.controls.deliver(), 4u);
  const std::vector<Heard> want{{0, NoticeKind::abort, 1, "a"},
                                {2, NoticeKind::abort, 1, "a"},
                                {1, NoticeKind::abort, 0, "b"},
                                {2, NoticeKind::abort, 0, "b"}};
  EXPECT_EQ(world.heard, want);
  EXPECT_EQ(world.controls.deliver(), 0u);
}

TEST(LoopControls, WhatAHandlerFloodsWaitsForTheNextDelivery) {
  LoopWorld world(2);
  int answers = 0;
  world.members[0]->on_notice([&](const Notice&) { ++answers; });
  world.members[1]->on_notice([&](const Notice&) { world.members[1]->flood(abort_notice(1, "answer")); });
  world.members[0]->flood(abort_notice(0, "question"));
  EXPECT_EQ(world.controls.deliver(), 1u);
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(world.controls.deliver(), 1u);
  EXPECT_EQ(answers, 1);
}

TEST(LoopControls, ALostRankIsNamedToTheOthersAndHearsAndSaysNothingMore) {
  LoopWorld world(3);
  world.members[1]->flood(abort_notice(1, "last words"));
  world.controls.lose(1, "killed by the test");
  world.controls.lose(1, "twice");
  world.members[1]->flood(abort_notice(1, "from the grave"));
  world.members[0]->flood(abort_notice(0, "after"));
  world.controls.deliver();
  const std::vector<Heard> want{{0, NoticeKind::abort, 1, "last words"},
                                {2, NoticeKind::abort, 1, "last words"},
                                {0, NoticeKind::peer_lost, 1, "killed by the test"},
                                {2, NoticeKind::peer_lost, 1, "killed by the test"},
                                {2, NoticeKind::abort, 0, "after"}};
  EXPECT_EQ(world.heard, want);
}

TEST(LoopControls, LeavingIsAFarewellAndNotALoss) {
  LoopWorld world(3);
  world.members[2]->leave();
  world.members[2]->leave();
  world.members[0]->flood(abort_notice(0, "x"));
  world.controls.deliver();
  const std::vector<Heard> want{{0, NoticeKind::peer_left, 2, "rank 2 has left the job"},
                                {1, NoticeKind::peer_left, 2, "rank 2 has left the job"},
                                {1, NoticeKind::abort, 0, "x"}};
  EXPECT_EQ(world.heard, want);
}

TEST(LoopControls, AllRanksLookLikeThreadsOfOneProcess) {
  LoopWorld world(2);
  EXPECT_EQ(world.members[0]->ranks(), 2);
  EXPECT_EQ(world.members[1]->rank(), 1);
  EXPECT_EQ(world.members[0]->peer(1).host_id, world.members[0]->peer(0).host_id);
  EXPECT_EQ(world.members[0]->peer(1).process_id, world.members[0]->peer(0).process_id);
}

TEST(LoopControls, AMemberMayOutliveTheWorld) {
  std::unique_ptr<Control> member;
  {
    LoopControls controls(2);
    member = controls.take(0);
  }
  member->flood(abort_notice(0, "nobody hears"));
}

}  // namespace
}  // namespace sluice
