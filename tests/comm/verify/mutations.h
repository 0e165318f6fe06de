// One seeded fault in a correct schedule, or in the programs of one.
#pragma once

#include <vector>

#include "base/rng.h"
#include "comm/lower/program.h"
#include "comm/schedule/schedule.h"

namespace sluice {

using ScheduleMutation = bool (*)(Schedule&, Rng&);  // false: there was nothing to change
using ProgramMutation = bool (*)(std::vector<Program>&, Rng&, int& slots);

namespace mutation {

// The mutated schedule needs rederive().
bool drop(Schedule& schedule, Rng& rng);
bool double_step(Schedule& schedule, Rng& rng);
bool swap_neighbours(Schedule& schedule, Rng& rng);
bool redirect(Schedule& schedule, Rng& rng);
bool wrong_chunk(Schedule& schedule, Rng& rng);
bool wrong_source(Schedule& schedule, Rng& rng);
bool swap_summands(Schedule& schedule, Rng& rng);
bool other_tree(Schedule& schedule, Rng& rng);
bool cut_moment(Schedule& schedule, Rng& rng);
bool join_moments(Schedule& schedule, Rng& rng);

// `slots`: of every flow.
bool dropped_wait(std::vector<Program>& programs, Rng& rng, int& slots);
bool early_release(std::vector<Program>& programs, Rng& rng, int& slots);
bool missing_signal(std::vector<Program>& programs, Rng& rng, int& slots);
bool fewer_credits(std::vector<Program>& programs, Rng& rng, int& slots);
bool swapped_steps(std::vector<Program>& programs, Rng& rng, int& slots);
bool described_too_much(std::vector<Program>& programs, Rng& rng, int& slots);
bool wrong_operand(std::vector<Program>& programs, Rng& rng, int& slots);
bool wrong_offer(std::vector<Program>& programs, Rng& rng, int& slots);
bool wrong_home(std::vector<Program>& programs, Rng& rng, int& slots);
bool not_lent(std::vector<Program>& programs, Rng& rng, int& slots);
bool dropped_closing(std::vector<Program>& programs, Rng& rng, int& slots);

}  // namespace mutation
}  // namespace sluice
