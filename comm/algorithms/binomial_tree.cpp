#include "comm/algorithms/binomial_tree.h"

#include <algorithm>
#include <array>
#include <bit>

#include "comm/algorithms/request.h"

namespace sluice {
namespace {

// Nodes are ranks counted from the tree's root. Node v's subtree before round `distance` is v..v+distance-1.
struct RankTree {
  int ranks = 1;
  Rank root = 0;
  Rank rank(int node) const { return (node + root) % ranks; }
  bool receives(int node, int distance) const { return node % (2 * distance) == 0 && node + distance < ranks; }
};

// Sums up to node 0: `sum(node)` says where a node keeps its partial sum, `last` where the whole one goes; executed by node 0.
template <typename Sum>
void reduce_up(ScheduleBuilder& builder, const RankTree& tree, Sum sum, Place last) {
  const auto held = [&](int node, int distance) {
    const bool summed = distance > 1 && node + 1 < tree.ranks;  // in round 1 already, if it has a neighbour
    return summed ? sum(node) : input(tree.rank(node), 0);
  };
  for (int distance = 1; distance < tree.ranks; distance *= 2)
    for (int node = 0; node < tree.ranks; node += 2 * distance) {
      if (!tree.receives(node, distance)) continue;
      const bool whole = node == 0 && 2 * distance >= tree.ranks;
      builder.combine(std::array{held(node, distance), held(node + distance, distance)},
                      std::array{whole ? last : sum(node)}, Tree::chain, tree.rank(node));
    }
}

// From node 0, which has it at `first`, to the outputs of the others.
void broadcast_down(ScheduleBuilder& builder, const RankTree& tree, Place first) {
  for (int distance = 1; distance < tree.ranks; distance *= 2)
    for (int node = 0; node < distance && node + distance < tree.ranks; ++node)
      builder.copy(node == 0 ? first : output(tree.rank(node), 0), output(tree.rank(node + distance), 0));
}

// Levels of broadcast_down: a node is as deep as its number has ones.
int depth_of_broadcast(int ranks) { return log2_up(power_of_two_within(ranks)); }

// The most blocks that move at once in a gather or scatter: those of the largest subtree below the root.
int largest_subtree(int ranks) {
  int most = 0;
  for (int distance = 1; distance < ranks; distance *= 2) most = std::max(most, std::min(distance, ranks - distance));
  return most;
}

}  // namespace

Result<Schedule> binomial_tree_all_reduce(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_reduce, true));
  const int ranks = request.ranks;
  const bool accumulators = request.order == Order::canonical && ranks > 2;
  ScheduleBuilder builder("binomial_tree_all_reduce", {Collective::all_reduce, ranks, 1, 0, accumulators ? 1 : 0},
                          request.only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));
  const RankTree tree{ranks, 0};
  reduce_up(
      builder, tree, [&](int node) { return accumulators ? scratch(node, 0) : output(node, 0); }, output(0, 0));
  broadcast_down(builder, tree, output(0, 0));
  return std::move(builder).build();
}

AlgorithmCost binomial_tree_all_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {1.0 * log2_up(ranks) + depth_of_broadcast(ranks), log2_up(ranks) * bytes, 2.0 * log2_up(ranks) * bytes};
}

Result<Schedule> binomial_tree_broadcast(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::broadcast, true));
  ScheduleBuilder builder("binomial_tree_broadcast", {Collective::broadcast, request.ranks, 1, request.root, 0},
                          request.only);
  const Place first = input(request.root, 0);
  builder.copy(first, output(request.root, 0));
  broadcast_down(builder, {request.ranks, request.root}, first);
  return std::move(builder).build();
}

AlgorithmCost binomial_tree_broadcast_cost(int ranks, double bytes) {
  return {std::max(1.0, 1.0 * depth_of_broadcast(ranks)), log2_up(ranks) * bytes, 0};
}

Result<Schedule> binomial_tree_reduce(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::reduce, true));
  const int ranks = request.ranks;
  ScheduleBuilder builder("binomial_tree_reduce", {Collective::reduce, ranks, 1, request.root, ranks > 2 ? 1 : 0},
                          request.only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));
  const RankTree tree{ranks, request.order == Order::canonical ? 0 : request.root};
  reduce_up(
      builder, tree, [&](int node) { return scratch(tree.rank(node), 0); }, output(request.root, 0));
  return std::move(builder).build();
}

AlgorithmCost binomial_tree_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {1.0 * log2_up(ranks), bytes, 2.0 * log2_up(ranks) * bytes};
}

Result<Schedule> binomial_tree_gather(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::gather, true));
  const int ranks = request.ranks;
  const RankTree tree{ranks, request.root};
  ScheduleBuilder builder("binomial_tree_gather", {Collective::gather, ranks, 1, request.root, ranks > 3 ? ranks : 0},
                          request.only);
  // Where a node has the block of node `of`.
  const auto held = [&](int node, int of) {
    if (node == of) return input(tree.rank(node), 0);
    return node == 0 ? output(request.root, tree.rank(of)) : scratch(tree.rank(node), tree.rank(of));
  };
  builder.copy(input(request.root, 0), output(request.root, request.root));
  for (int distance = 1; distance < ranks; distance *= 2)
    for (int block = 0; block < distance; ++block)
      for (int node = 0; node + distance + block < ranks; node += 2 * distance)
        builder.copy(held(node + distance, node + distance + block), held(node, node + distance + block));
  return std::move(builder).build();
}

AlgorithmCost binomial_tree_gather_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  const int most = largest_subtree(ranks);
  return {1.0 * levels_of_doubling(most), most * bytes / ranks, 0};
}

Result<Schedule> binomial_tree_scatter(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::scatter, true));
  const int ranks = request.ranks;
  const RankTree tree{ranks, request.root};
  ScheduleBuilder builder("binomial_tree_scatter", {Collective::scatter, ranks, 1, request.root, ranks > 3 ? ranks : 0},
                          request.only);
  const auto held = [&](int node, int of) {
    if (node == 0) return input(request.root, tree.rank(of));
    return node == of ? output(tree.rank(node), 0) : scratch(tree.rank(node), tree.rank(of));
  };
  builder.copy(input(request.root, request.root), output(request.root, 0));
  for (int distance = power_of_two_from(ranks) / 2; distance >= 1; distance /= 2)
    for (int block = 0; block < distance; ++block)
      for (int node = 0; node + distance + block < ranks; node += 2 * distance)
        builder.copy(held(node, node + distance + block), held(node + distance, node + distance + block));
  return std::move(builder).build();
}

AlgorithmCost binomial_tree_scatter_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  // A block goes to its subtree's root in turn, then down without waiting.
  int levels = 1;
  for (unsigned node = 1; node < static_cast<unsigned>(ranks); ++node)
    levels = std::max(levels, levels_of(static_cast<int>(node - std::bit_floor(node)) + 1) + std::popcount(node) - 1);
  return {1.0 * levels, (ranks - 1) * bytes / ranks, 0};
}

}  // namespace sluice
