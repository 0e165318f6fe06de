// Lowered programs run on numbers, the dumb way: one thread, the ranks take turns at random, flows are rings of vectors. What a
// wrong program does to its slots, this does too: it reads stale slots and overwrites unread ones.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "comm/lower/program.h"
#include "tests/support/run_schedule.h"

namespace sluice::test {

struct ProgramsRun {
  ScheduleRun numbers;  // in_place must be that of the programs; shuffle is not used
  int slots = 8;
  int window = 2;
  std::size_t slice_elements = 3;
  bool direct = true;      // describes what may be described
  std::uint64_t seed = 1;  // of the turns
};

// Errors: timeout when no rank can go on; invalid_argument when a message has another length than its reader expects.
Result<Outputs> run_programs(std::span<const Program> programs, const ProgramsRun& run);

}  // namespace sluice::test
