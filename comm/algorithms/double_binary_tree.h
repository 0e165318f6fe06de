// Double binary tree: each half of the message is summed up one binary tree and sent down it again; who is a leaf in one
// tree is an inner node in the other, so every rank's links are used both ways.
//
//   Shapes    two chunks, one a tree.
//   Cost      about 2 log2 P levels; a rank sends at most 2 S bytes, most of them 3/2 S to 2 S. No scratch.
//   Order     fixed: own value, then the nearer child, then the farther one.
//   Use for   middling S over many ranks, cut into slices: log2 P latencies at nearly a ring's bandwidth.
//   Source    Sanders, Speck, Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
//             Computing 35(12), 2009. The trees (lowest set bit; mirrored for even P, shifted by one for odd P) are those of NCCL.
#pragma once

#include <vector>

#include "comm/algorithms/algorithms.h"

namespace sluice {

Result<Schedule> double_binary_tree_all_reduce(const AlgorithmRequest& request);
AlgorithmCost double_binary_tree_all_reduce_cost(int ranks, double bytes);

// A rooted tree over ranks.
struct BinaryTree {
  Rank root = 0;
  std::vector<Rank> parent;                 // of the root: -1
  std::vector<std::vector<Rank>> children;  // nearest first
  std::vector<Rank> bottom_up;              // every rank after its children, lowest first
  std::vector<int> height;                  // of a leaf: 0
};
// `second`: the other one of the two. ranks >= 1.
BinaryTree binary_tree(int ranks, bool second);

}  // namespace sluice
