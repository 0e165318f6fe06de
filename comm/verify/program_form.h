// What must hold before a program can be run at all: nothing in it points outside of it.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "comm/lower/program.h"

namespace sluice {

std::string_view name(Act act);  // "wait_ready", for messages

// That `programs[rank]` is rank's, of the same schedule as the others, and that flows, places, actions and combines exist.
// Errors: invalid_argument, naming rank and fault.
Status check_program_form(std::span<const Program> programs, Rank rank, int slots);

}  // namespace sluice
