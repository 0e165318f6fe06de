// Random programs over many communicators, from a seed: which ranks are in which communicator on which lane, what each communicator runs,
// and what each rank does of it in which order. Some ranks are free: they post all their calls, in an order of their own, before they wait for
// any. The others block in each call, in one order that is the same for all of them. Every such program must end: by induction over
// that order, for no posted call waits for another communicator's. Some calls name a lane of their own, and run beside the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"
#include "tests/support/collective_case.h"

namespace sluice::test {

class RandomLanes {
 public:
  static constexpr int kCommunicatorsMax = 8;
  static constexpr int kCallsMax = 6;  // of each
  static constexpr std::size_t kCountMax = 4000;

  RandomLanes(int ranks, std::uint64_t seed) : ranks_(ranks), seed_(seed) {
    Rng rng(seed);
    const int communicators = 1 + static_cast<int>(rng.below(kCommunicatorsMax));
    for (int i = 0; i < communicators; ++i) {
      groups_.push_back(random_group(rng));
      order_.insert(order_.end(), groups_.back().calls.size(), static_cast<std::size_t>(i));
    }
    shuffle(order_, rng);
    for (Rank rank = 0; rank < ranks; ++rank) free_.push_back(rng.chance(0.5));
  }

  struct Group {
    std::vector<Rank> members;  // world ranks
    Lane lane;
    std::vector<std::unique_ptr<CaseRun>> calls;  // in the communicator's order
    std::vector<std::string> what;
  };
  const std::vector<Group>& groups() const { return groups_; }

  // The communicators that rank is in, by group; empty elsewhere. Not collective.
  std::vector<Communicator> communicators_of(Runtime& runtime, Rank rank, std::uint64_t first_id) const {
    std::vector<Communicator> made(groups_.size());
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      const auto at = std::find(groups_[i].members.begin(), groups_[i].members.end(), rank);
      if (at == groups_[i].members.end()) continue;
      detail::Identity identity;
      identity.id = first_id + i;
      identity.name = "group" + std::to_string(i);
      identity.lane = groups_[i].lane;
      identity.members = groups_[i].members;
      identity.rank = static_cast<Rank>(at - groups_[i].members.begin());
      identity.deadline = std::chrono::seconds(60);
      made[i] = runtime.state()->make_communicator(identity);
    }
    return made;
  }

  bool is_free(Rank rank) const { return free_[static_cast<std::size_t>(rank)]; }

  // The groups whose next call the rank posts, one after another. A free rank's order is its own.
  std::vector<std::size_t> order_of(Rank rank) const {
    std::vector<std::size_t> order;
    for (const std::size_t group : order_)
      if (std::find(groups_[group].members.begin(), groups_[group].members.end(), rank) != groups_[group].members.end())
        order.push_back(group);
    Rng rng(seed_ * 1000 + static_cast<std::uint64_t>(rank) + 1);
    if (is_free(rank)) shuffle(order, rng);
    return order;
  }

  // After all ended: what is wrong, or an empty string.
  std::string check() const {
    for (const Group& group : groups_)
      for (std::size_t i = 0; i < group.calls.size(); ++i)
        if (const std::string wrong = group.calls[i]->check(); !wrong.empty())
          return "seed " + std::to_string(seed_) + " " + group.what[i] + ": " + wrong;
    return {};
  }

 private:
  static void shuffle(std::vector<std::size_t>& order, Rng& rng) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
  }
  // Some share a lane, some have one of their own; some are limited, or pinned to a core that every rank may use.
  static Lane random_lane(Rng& rng) {
    Lane lane{.name = "lane" + std::to_string(rng.below(4))};
    lane.priority = static_cast<Priority>(rng.below(4));
    lane.weight = 1 + static_cast<std::uint32_t>(rng.below(4));
    if (rng.chance(0.2)) lane.bytes_per_second_max = 20 << 20;
    if (rng.chance(0.2)) lane.copied_per_second_max = 20 << 20;
    if (rng.chance(0.2)) lane.cores = Cores{allowed_cores().front()};
    return lane;
  }
  Group random_group(Rng& rng) const {
    Group group;
    for (Rank rank = 0; rank < ranks_; ++rank)
      if (rng.chance(0.6)) group.members.push_back(rank);
    if (group.members.empty())
      group.members.push_back(static_cast<Rank>(rng.below(static_cast<std::uint64_t>(ranks_))));
    group.lane = random_lane(rng);
    const int calls = 1 + static_cast<int>(rng.below(kCallsMax));
    for (int i = 0; i < calls; ++i) {
      constexpr OperationKind kKinds[] = {OperationKind::all_reduce,     OperationKind::all_gather,
                                          OperationKind::broadcast,      OperationKind::all_to_all,
                                          OperationKind::reduce_scatter, OperationKind::barrier};
      CollectiveCase one;
      one.kind = kKinds[rng.below(std::size(kKinds))];
      one.ranks = static_cast<int>(group.members.size());
      one.count = rng.chance(0.2) ? 0 : rng.below(kCountMax);
      one.root = static_cast<Rank>(rng.below(group.members.size()));
      one.seed = rng.next();
      if (rng.chance(0.2)) one.lane = random_lane(rng);
      group.what.push_back(describe(one));
      group.calls.push_back(std::make_unique<CaseRun>(one));
    }
    return group;
  }

  int ranks_;
  std::uint64_t seed_;
  std::vector<Group> groups_;
  std::vector<std::size_t> order_;  // all calls, by group
  std::vector<bool> free_;          // by rank
};

}  // namespace sluice::test
