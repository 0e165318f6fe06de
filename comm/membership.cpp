// New communicators from old ones: split and shrink. Both agree on members over what already exists: split gathers colors on
// the parent's own flows, shrink votes over the control tree.
#include <algorithm>
#include <numeric>

#include "base/rng.h"
#include "comm/communicator.h"
#include "comm/executor/call_lanes.h"
#include "comm/executor/communicator_state.h"
#include "comm/executor/runtime_state.h"
#include "comm/executor/shrink.h"

namespace sluice {
namespace {

struct SplitWord {
  std::int64_t color = 0;
  std::int64_t key = 0;
  std::uint64_t lane = 0;  // agreement_hash
};

// Ranks of one color, by key, then by rank.
std::vector<Rank> ranks_of_color(const std::vector<SplitWord>& words, int color) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].color == color) ranks.push_back(static_cast<Rank>(i));
  std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) {
    return words[static_cast<std::size_t>(a)].key < words[static_cast<std::size_t>(b)].key;
  });
  return ranks;
}

// Lanes of one color must agree; whoever differs is named.
Status check_lanes(const std::vector<SplitWord>& words, const std::vector<Rank>& ranks, int color,
                   const std::string& parent) {
  for (const Rank rank : ranks)
    if (words[static_cast<std::size_t>(rank)].lane != words[static_cast<std::size_t>(ranks.front())].lane)
      return {Code::mismatch, "split of communicator '" + parent + "', color " + std::to_string(color) + ": rank " +
                                  std::to_string(rank) + " and rank " + std::to_string(ranks.front()) +
                                  " name different lanes"};
  return {};
}

detail::Identity make_identity(const Communicator& parent, const std::vector<Rank>& ranks, std::uint64_t id,
                               const SplitOptions& options, const Lane& lane, const std::string& fallback_name) {
  detail::Identity identity;
  identity.id = id;
  identity.name = options.name.empty() ? fallback_name : options.name;
  identity.lane = lane;
  identity.deadline = options.deadline.value_or(parent.state()->identity().deadline);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    identity.members.push_back(parent.world_rank(ranks[i]));
    if (ranks[i] == parent.rank()) identity.rank = static_cast<Rank>(i);
  }
  return identity;
}

}  // namespace

Result<Communicator> Communicator::split(int color, int key, const SplitOptions& options) {
  if (!valid()) return Error{Code::invalid_argument, "split of an empty Communicator"};
  if (color < 0 && color != kNoColor)
    return Error{Code::invalid_argument, "split on rank " + std::to_string(rank()) + ": color is " +
                                             std::to_string(color) + ", but must be 0 or more, or kNoColor"};
  SLUICE_TRY_ASSIGN(const Lane lane, state_->runtime().complete_lane(options.lane));
  const SplitWord mine{color, key, detail::agreement_hash(lane)};
  std::vector<SplitWord> words(static_cast<std::size_t>(ranks()));
  detail::Call call;
  call.kind = OperationKind::split;
  call.collective = Collective::all_gather;
  call.in = &mine;
  call.out = words.data();
  call.count = sizeof(SplitWord);
  call.type = DataType::uint8;
  CallOptions call_options;
  call_options.deadline = options.deadline;
  SLUICE_TRY(state_->post(call, call_options).wait());

  const std::uint64_t number = state_->next_split();
  if (color == kNoColor) return Communicator();
  const std::vector<Rank> members = ranks_of_color(words, color);
  SLUICE_TRY(check_lanes(words, members, color, name()));
  const std::uint64_t id = mix64(state_->identity().id ^ mix64(mix64(number) ^ static_cast<std::uint64_t>(color)));
  return state_->runtime().make_communicator(
      make_identity(*this, members, id, options, lane, name() + "/" + std::to_string(color)));
}

Result<Communicator> Communicator::shrink(const SplitOptions& options) {
  if (!valid()) return Error{Code::invalid_argument, "shrink of an empty Communicator"};
  detail::RuntimeState& runtime = state_->runtime();
  SLUICE_TRY_ASSIGN(const Lane new_lane, runtime.complete_lane(options.lane == Lane{} ? lane() : options.lane));
  if (state_->shrunk())
    return Error{Code::invalid_argument, "communicator '" + name() + "' on rank " + std::to_string(rank()) +
                                             " was shrunk already: shrink the one that shrink gave"};
  if (!state_->broken()) state_->break_with({Code::aborted, "communicator '" + name() + "' was shrunk"}, true);
  runtime.engine().with_token([] {});  // whoever ran an operation of it has stopped: nothing more is written for it
  const auto known_lost = [&] {
    std::set<Rank> lost;
    for (const Rank member : runtime.gone_or_left())
      if (state_->rank_of_world(member)) lost.insert(member);
    return lost;
  };
  const detail::ShrinkTable::Vote vote{state_->identity().id, state_->identity().members,
                                       options.deadline.value_or(state_->identity().deadline)};
  SLUICE_TRY_ASSIGN(const std::set<Rank> lost, runtime.shrinks().agree(runtime.control(), vote, known_lost));
  std::vector<Rank> survivors;
  std::uint64_t id = mix64(state_->identity().id ^ 0x51c1);
  for (Rank rank = 0; rank < ranks(); ++rank) {
    if (lost.contains(world_rank(rank))) {
      id = mix64(id ^ static_cast<std::uint64_t>(rank));
      continue;
    }
    survivors.push_back(rank);
  }
  state_->mark_shrunk();
  return runtime.make_communicator(make_identity(*this, survivors, id, options, new_lane, name() + "-shrunk"));
}

}  // namespace sluice
