#include "comm/algorithms/double_binary_tree.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "comm/algorithms/request.h"

namespace sluice {
namespace {

// In the first tree a node's parent clears its lowest set bit and sets the next one; beyond the end, it just clears it.
int parent_of(int node, int ranks) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < ranks ? up : node ^ bit;
}

}  // namespace

BinaryTree binary_tree(int ranks, bool second) {
  const auto rank_of = [&](int node) {
    if (!second) return node;
    return ranks % 2 == 0 ? ranks - 1 - node : (node + 1) % ranks;
  };
  const std::size_t size = static_cast<std::size_t>(ranks);
  BinaryTree tree;
  tree.root = rank_of(0);
  tree.parent.assign(size, -1);
  tree.children.resize(size);
  tree.height.assign(size, 0);
  // Nodes with a low lowest bit lie lower, so this order has children before parents.
  std::vector<int> nodes(size);
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto lowest_bit = [&](int node) { return node == 0 ? 2 * kRanksMax : node & -node; };
  std::stable_sort(nodes.begin(), nodes.end(), [&](int a, int b) { return lowest_bit(a) < lowest_bit(b); });
  for (const int node : nodes) {
    const std::size_t rank = static_cast<std::size_t>(rank_of(node));
    tree.bottom_up.push_back(rank_of(node));
    if (node == 0) continue;
    const int up = parent_of(node, ranks);
    const std::size_t parent = static_cast<std::size_t>(rank_of(up));
    tree.parent[rank] = rank_of(up);
    tree.children[parent].push_back(rank_of(node));
    tree.height[parent] = std::max(tree.height[parent], tree.height[rank] + 1);
  }
  std::stable_sort(tree.bottom_up.begin(), tree.bottom_up.end(), [&](Rank a, Rank b) {
    return tree.height[static_cast<std::size_t>(a)] < tree.height[static_cast<std::size_t>(b)];
  });
  return tree;
}

Result<Schedule> double_binary_tree_all_reduce(const AlgorithmRequest& request) {
  const int ranks = request.ranks;
  SLUICE_TRY(check_request(request, Collective::all_reduce, one_rank(ranks)));
  ScheduleBuilder builder("double_binary_tree_all_reduce", {Collective::all_reduce, ranks, /*chunks=*/2, 0, 0},
                          request.only);
  const std::array trees{binary_tree(ranks, false), binary_tree(ranks, true)};
  if (ranks == 1)
    for (int chunk = 0; chunk < 2; ++chunk) builder.copy(input(0, chunk), output(0, chunk));

  // Both trees have one shape, so going through them side by side keeps the levels of every pair in order.
  const auto children = [&](int chunk, Rank rank) -> const std::vector<Rank>& {
    return trees[static_cast<std::size_t>(chunk)].children[static_cast<std::size_t>(rank)];
  };
  std::vector<Place> from;
  for (int i = 0; i < ranks; ++i)
    for (int chunk = 0; chunk < 2; ++chunk) {
      const Rank rank = trees[static_cast<std::size_t>(chunk)].bottom_up[static_cast<std::size_t>(i)];
      if (children(chunk, rank).empty()) continue;
      from = {input(rank, chunk)};
      for (const Rank child : children(chunk, rank))
        from.push_back(children(chunk, child).empty() ? input(child, chunk) : output(child, chunk));
      builder.combine(from, std::array{output(rank, chunk)});
    }
  for (int i = ranks - 1; i >= 0; --i)
    for (int chunk = 0; chunk < 2; ++chunk) {
      const Rank rank = trees[static_cast<std::size_t>(chunk)].bottom_up[static_cast<std::size_t>(i)];
      for (const Rank child : children(chunk, rank)) builder.copy(output(rank, chunk), output(child, chunk));
    }
  return std::move(builder).build();
}

AlgorithmCost double_binary_tree_all_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  const std::array trees{binary_tree(ranks, false), binary_tree(ranks, true)};
  AlgorithmCost cost;
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    double sent = 0;
    double combined = 0;
    for (const BinaryTree& tree : trees) {
      const double children = static_cast<double>(tree.children[rank].size());
      sent += (children + (tree.parent[rank] >= 0 ? 1 : 0)) * bytes / 2;
      combined += (children > 0 ? children + 1 : 0) * bytes / 2;
    }
    cost.sent_bytes = std::max(cost.sent_bytes, sent);
    cost.combined_bytes = std::max(cost.combined_bytes, combined);
    cost.rounds = std::max(cost.rounds, 2.0 * trees[0].height[static_cast<std::size_t>(trees[0].root)]);
  }
  return cost;
}

}  // namespace sluice
