#include "comm/algorithms/algorithms.h"

#include "comm/algorithms/binomial_tree.h"
#include "comm/algorithms/bruck.h"
#include "comm/algorithms/chain.h"
#include "comm/algorithms/direct.h"
#include "comm/algorithms/double_binary_tree.h"
#include "comm/algorithms/halving_doubling.h"
#include "comm/algorithms/recursive_doubling.h"
#include "comm/algorithms/request.h"
#include "comm/algorithms/ring.h"

namespace sluice {
namespace {

using enum Collective;

// name, collective, uneven blocks, ranks, ranks with canonical order, builder, cost
constexpr Algorithm kAlgorithms[] = {
    {"one_shot", all_reduce, false, any_ranks, any_ranks, one_shot_all_reduce, one_shot_all_reduce_cost},
    {"two_shot", all_reduce, false, any_ranks, any_ranks, two_shot_all_reduce, two_shot_all_reduce_cost},
    {"ring", all_reduce, false, any_ranks, one_rank, ring_all_reduce, ring_all_reduce_cost},
    {"double_binary_tree", all_reduce, false, any_ranks, one_rank, double_binary_tree_all_reduce,
     double_binary_tree_all_reduce_cost},
    {"recursive_doubling", all_reduce, false, any_ranks, powers_of_two, recursive_doubling_all_reduce,
     recursive_doubling_all_reduce_cost},
    {"halving_doubling", all_reduce, false, any_ranks, powers_of_two, halving_doubling_all_reduce,
     halving_doubling_all_reduce_cost},
    {"binomial_tree", all_reduce, false, any_ranks, any_ranks, binomial_tree_all_reduce, binomial_tree_all_reduce_cost},

    {"direct", reduce_scatter, true, any_ranks, any_ranks, direct_reduce_scatter, direct_reduce_scatter_cost},
    {"ring", reduce_scatter, false, any_ranks, one_rank, ring_reduce_scatter, ring_reduce_scatter_cost},
    {"recursive_halving", reduce_scatter, true, any_ranks, powers_of_two, recursive_halving_reduce_scatter,
     recursive_halving_reduce_scatter_cost},

    {"direct", all_gather, true, any_ranks, any_ranks, direct_all_gather, direct_all_gather_cost},
    {"ring", all_gather, true, any_ranks, any_ranks, ring_all_gather, ring_all_gather_cost},
    {"bruck", all_gather, true, any_ranks, any_ranks, bruck_all_gather, bruck_all_gather_cost},

    {"direct", broadcast, false, any_ranks, any_ranks, direct_broadcast, direct_broadcast_cost},
    {"binomial_tree", broadcast, false, any_ranks, any_ranks, binomial_tree_broadcast, binomial_tree_broadcast_cost},
    {"chain", broadcast, false, any_ranks, any_ranks, chain_broadcast, chain_broadcast_cost},

    {"direct", reduce, false, any_ranks, any_ranks, direct_reduce, direct_reduce_cost},
    {"binomial_tree", reduce, false, any_ranks, any_ranks, binomial_tree_reduce, binomial_tree_reduce_cost},
    {"chain", reduce, false, any_ranks, one_rank, chain_reduce, chain_reduce_cost},

    {"direct", gather, true, any_ranks, any_ranks, direct_gather, direct_gather_cost},
    {"binomial_tree", gather, false, any_ranks, any_ranks, binomial_tree_gather, binomial_tree_gather_cost},

    {"direct", scatter, true, any_ranks, any_ranks, direct_scatter, direct_scatter_cost},
    {"binomial_tree", scatter, false, any_ranks, any_ranks, binomial_tree_scatter, binomial_tree_scatter_cost},

    {"pairwise", all_to_all, true, any_ranks, any_ranks, pairwise_all_to_all, pairwise_all_to_all_cost},
    {"bruck", all_to_all, false, any_ranks, any_ranks, bruck_all_to_all, bruck_all_to_all_cost},
};

}  // namespace

std::span<const Algorithm> all_algorithms() { return kAlgorithms; }

const Algorithm* find_algorithm(Collective collective, std::string_view name) {
  for (const Algorithm& one : kAlgorithms)
    if (one.collective == collective && one.name == name) return &one;
  return nullptr;
}

}  // namespace sluice
