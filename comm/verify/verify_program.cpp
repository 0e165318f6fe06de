#include "comm/verify/verify_program.h"

#include <string>

#include "comm/verify/program_machine.h"

namespace sluice {

Status verify_programs(std::span<const Program> programs, const ProgramCheck& check) {
  if (programs.empty() || programs.size() != static_cast<std::size_t>(programs[0].shape.ranks))
    return {Code::invalid_argument, "a proof needs the programs of all ranks, not " + std::to_string(programs.size())};
  if (check.slots < 1 || check.slices < 1 || check.window < 1)
    return {Code::invalid_argument, "a proof needs at least one slot, slice and slice in flight"};
  return ProgramMachine(programs, check).run();
}

}  // namespace sluice
