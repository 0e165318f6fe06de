// What `sluice explain` answers with: for a collective and size which algorithm is chosen, why, and what each alternative costs.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/config.h"
#include "comm/tune/tune.h"
#include "comm/tune/tuning_store.h"
#include "tools/sluice/commands.h"

namespace sluice::tools {

// One algorithm for one question: its time, the model's parts of it, or why it can't be used.
struct Alternative {
  Prediction prediction;
  double rounds_seconds = 0;
  double transfer_seconds = 0;
  double combine_seconds = 0;
  std::string refused;
};

struct Answer {
  Collective collective = Collective::all_reduce;
  std::size_t bytes = 0;
  const Algorithm* chosen = nullptr;
  std::string why;
  std::vector<Alternative> alternatives;  // those that can be used first, the one to choose before all
};

struct Question {
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;
};
// Errors: invalid_argument names the option.
Result<Question> read_question(const ExplainOptions& options);

// "64,4K,1M", by parse_bytes. Errors: invalid_argument names `option`.
Result<std::vector<std::size_t>> parse_sizes(const std::string& option, const std::string& text);

// What the answers go by: settings, the measured times that a runtime would load, and the link as its ranks would see it.
struct Grounds {
  Config config;
  Tuning tuning;
  LinkKind kind = LinkKind::processes;
  LinkModel link;  // borrows from `tuning`
};
// Two ranks of this process join as a job would, and say what they predict.
Result<Grounds> find_grounds(const ExplainOptions& options);

Result<Answer> answer(Collective collective, std::size_t bytes, const ExplainOptions& options, const Grounds& grounds);

}  // namespace sluice::tools
