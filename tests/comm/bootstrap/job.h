// A job of threads: each joins as a rank and records the notices it hears.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/bootstrap/control.h"
#include "comm/bootstrap/peer_info.h"
#include "comm/bootstrap/tree_control.h"

namespace sluice::test {

using namespace std::chrono_literals;

// What one rank heard.
class Ear {
 public:
  struct Heard {
    Notice notice;
    Nanoseconds when;
  };
  void hear(const Notice& notice) {
    const std::lock_guard lock(mutex_);
    heard_.push_back({notice, RealClock::instance().now()});
    changed_.notify_all();
  }
  std::vector<Heard> heard() const {
    const std::lock_guard lock(mutex_);
    return heard_;
  }
  // Waits until `enough` of what was heard; false when `at_most` passed first.
  bool wait(const std::function<bool(const std::vector<Heard>&)>& enough, Nanoseconds at_most = 10s) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, at_most, [&] { return enough(heard_); });
  }
  bool wait_for_text(const std::string& text, Nanoseconds at_most = 10s) const {
    return wait(
        [&](const std::vector<Heard>& all) {
          for (const Heard& one : all)
            if (one.notice.text == text) return true;
          return false;
        },
        at_most);
  }
  bool wait_for_loss(Rank rank, Nanoseconds at_most = 10s) const {
    return wait(
        [&](const std::vector<Heard>& all) {
          for (const Heard& one : all)
            if (one.notice.kind == NoticeKind::peer_lost && one.notice.world_rank == rank) return true;
          return false;
        },
        at_most);
  }
  int losses() const {
    int count = 0;
    for (const Heard& one : heard()) count += one.notice.kind == NoticeKind::peer_lost ? 1 : 0;
    return count;
  }
  int times(const std::string& text) const {
    int count = 0;
    for (const Heard& one : heard()) count += one.notice.text == text ? 1 : 0;
    return count;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<Heard> heard_;
};

inline Notice notice_of(Rank about, std::string text, NoticeKind kind = NoticeKind::abort) {
  Notice notice;
  notice.kind = kind;
  notice.world_rank = about;
  notice.text = std::move(text);
  return notice;
}

struct Job {
  std::vector<std::unique_ptr<Control>> controls;  // nullptr: did not join, or was let go
  std::vector<Status> outcomes;
  std::vector<std::unique_ptr<Ear>> ears;

  bool whole() const {
    for (const auto& control : controls)
      if (control == nullptr) return false;
    return true;
  }
  void leave_all() {
    std::vector<std::thread> threads;
    for (auto& control : controls)
      if (control) threads.emplace_back([&control] { control->leave(); });
    for (std::thread& thread : threads) thread.join();
  }
};

// Joins all ranks at once. `change` edits a rank's plan before it joins.
inline Job join_threads(
    int ranks, const std::function<void(JoinPlan&)>& change = [](JoinPlan&) {}, Nanoseconds deadline = 20s) {
  const auto id = make_local_unique_id();
  EXPECT_TRUE(id.ok());
  const Rendezvous rendezvous = *to_rendezvous(*id);
  Job job;
  job.controls.resize(static_cast<std::size_t>(ranks));
  job.outcomes.resize(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    job.ears.push_back(std::make_unique<Ear>());
    threads.emplace_back([&, rank] {
      JoinPlan plan = plan_of(rank, ranks, deadline, Config());
      plan.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
      change(plan);
      auto joined = join_by_plan(std::move(plan));
      job.outcomes[static_cast<std::size_t>(rank)] = joined.status();
      if (joined.ok()) job.controls[static_cast<std::size_t>(rank)] = *std::move(joined);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t rank = 0; rank < job.controls.size(); ++rank) {
    EXPECT_TRUE(job.outcomes[rank].ok()) << "rank " << rank << ": " << job.outcomes[rank].text();
    if (job.controls[rank])
      job.controls[rank]->on_notice([ear = job.ears[rank].get()](const Notice& notice) { ear->hear(notice); });
  }
  return job;
}

inline double seconds_since(Nanoseconds start) {
  return std::chrono::duration<double>(RealClock::instance().now() - start).count();
}

// As if each rank were on a host of its own, so that everything goes over TCP.
inline void own_host(JoinPlan& plan) { plan.self.host_id += static_cast<std::uint64_t>(plan.rank) + 1; }

}  // namespace sluice::test
