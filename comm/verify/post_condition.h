// What each collective promises, on symbols: shared by the proofs of schedules and of lowered programs.
#pragma once

#include <functional>

#include "comm/verify/symbols.h"
#include "comm/verify/verify.h"

namespace sluice {

// `at(rank, chunk)`: what the output place holds at the end. `parts`: of each block (or of the message) only so many chunks are
// looked at. Errors name the place, what it holds and what it should hold. On
// success `order` is the class of the weakest sum. Sums of one chunk must be the same bits at every rank.
Status check_post_condition(const ScheduleShape& shape, const Symbols& symbols,
                            const std::function<Symbol(Rank, int)>& at, int parts, OrderClass& order);

}  // namespace sluice
