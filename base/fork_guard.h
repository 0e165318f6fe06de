// Diagnoses use after fork: threads, sockets and mappings of the parent do not work in the child.
#pragma once

#include <cstdint>

namespace sluice {

// Counts the forks between the first process that asked and this one. A value remembered when an object was made that differs
// from the present one says that the object was inherited. One process-wide counter, because pthread_atfork offers no argument.
std::uint64_t fork_generation();

}  // namespace sluice
