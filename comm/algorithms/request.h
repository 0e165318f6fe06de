// What every builder here shares: the words for places, and the check of a request.
#pragma once

#include "base/result.h"
#include "comm/algorithms/algorithms.h"
#include "comm/schedule/schedule.h"

namespace sluice {

inline Place input(Rank rank, int chunk) { return {rank, Buffer::input, chunk}; }
inline Place output(Rank rank, int chunk) { return {rank, Buffer::output, chunk}; }
inline Place scratch(Rank rank, int chunk) { return {rank, Buffer::scratch, chunk}; }

// invalid_argument: ranks, root or `only` out of range, or `request` is for another collective; unsupported: canonical order
// is asked of an algorithm that does not keep it for so many ranks.
Status check_request(const AlgorithmRequest& request, Collective collective, bool keeps_canonical_order);

// ranks >= 1.
bool is_power_of_two(int ranks);
int power_of_two_within(int ranks);  // the largest that is <= ranks
int power_of_two_from(int ranks);    // the smallest that is >= ranks
int log2_up(int ranks);              // rounds of a doubling that reaches all ranks

// Levels that `messages` between one pair of ranks take, see kMessagesPerLevel.
int levels_of(int messages);
// Levels that a doubling over 0..blocks-1 takes: block i of a sender came to it as block i - 2^k of its partner at distance 2^k, the
// largest 2^k <= i, and blocks go along a pair in order. blocks >= 1.
int levels_of_doubling(int blocks);

// Rank counts, for Algorithm::supports and Algorithm::supports_canonical.
inline bool any_ranks(int ranks) { return ranks >= 1; }
inline bool no_ranks(int) { return false; }
inline bool powers_of_two(int ranks) { return ranks >= 1 && is_power_of_two(ranks); }
inline bool one_rank(int ranks) { return ranks == 1; }

}  // namespace sluice
