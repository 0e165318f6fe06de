// Lowered programs run by the real interpreter over the loop transport, in bfloat16, with buffers in windows.
#pragma once

#include <span>

#include "base/result.h"
#include "comm/lower/program.h"
#include "tests/support/run_programs.h"

namespace sluice::test {

// `run.seed`: of the transport's delays. `numbers.average` and `numbers.leaf_factor` are not used. Errors: timeout when nothing
// can move any more; mismatch when a message is not what its reader expects.
Result<Outputs> run_programs_on_loop(std::span<const Program> programs, const ProgramsRun& run);

}  // namespace sluice::test
