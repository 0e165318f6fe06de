// Proves one algorithm at one shape, or one parsed schedule: the schedule on symbols, then every rank's lowered program.
//
//   Programs  in both forms (in place where the schedule is proved so), with as few slots as they ask for and with more, over three
//             groups of slices. Also: the one-rank reading of the builder lowers to the same program as the whole schedule.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "comm/algorithms/algorithms.h"
#include "comm/verify/verify.h"

namespace sluice::tools {

struct ProofTask {
  const Algorithm* algorithm = nullptr;
  int ranks = 1;
  Rank root = 0;
  Order order = Order::fast;
};
std::string describe(const ProofTask& task);

struct RankRange {
  int first = 1;
  int last = 1;
};
// "4" or "1..64". Errors: invalid_argument.
Result<RankRange> parse_rank_range(const std::string& text);

// Rooted forms are proved for every root up to kRootsMax ranks, above for the first, second, middle and last: builders place
// ranks relative to the root.
inline constexpr int kRootsMax = 9;
std::vector<ProofTask> proof_tasks(RankRange range, const std::string& collective, const std::string& algorithm);

struct ProofReport {
  std::uint64_t programs = 0;  // proved, all ranks of one form together counting as one
  std::uint64_t steps = 0;     // of the schedule
  Proof proof;
};

// Errors: the first proof that fails, with its text.
Result<ProofReport> prove(const ProofTask& task, bool with_programs);
Result<ProofReport> prove_schedule(const Schedule& schedule, bool with_programs);

}  // namespace sluice::tools
