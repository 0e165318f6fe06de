// Every alternative timed against the choice: `sluice explain --check`.
#pragma once

#include <string>
#include <vector>

#include "tools/sluice/answers.h"

namespace sluice::tools {

struct Checked {
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;
  const Algorithm* chosen = nullptr;
  double expected_seconds = 0;  // what the choice went by
  double chosen_seconds = 0;
  const Algorithm* best = nullptr;
  double best_seconds = 0;
  double ratio() const { return chosen_seconds / best_seconds; }
};

// `seconds` of each alternative that can be used, in their order. One that was chosen though it was not timed is not checked.
std::vector<Checked> compare(const std::vector<Answer>& answers, const std::vector<std::vector<double>>& seconds);
// Those beyond kAsGood, the largest ratio first.
std::vector<Checked> mispredicted(std::vector<Checked> checked);

int check_command(const ExplainOptions& options);

}  // namespace sluice::tools
