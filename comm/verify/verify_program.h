// Proofs on lowered programs, slice-replicated: deadlock, reading before ready, slot reuse, early release, overwritten
// direct sources, lost signals, and the collective's post-condition once more.
//
//   Argument  ranks are sequential and talk only through FIFO flows with finite credits (a Kahn network), so one
//             fair run decides deadlock and results for every interleaving. Memory that others touch is the exception: a
//             described place must stay unchanged until it was read, and a lent one untouched by all but its borrower
//             until the result came. Both are checked for every read and write, by what the owner's own waits told it.
//   Limits    a proof holds for its slots and window, and for any number of slices once it holds for three groups of them (the
//             groups follow one another alike). Slots above Program::credits only add room.
//   Cost      O(actions x slices x P/64).
#pragma once

#include <span>

#include "base/result.h"
#include "comm/lower/program.h"
#include "comm/verify/verify.h"

namespace sluice {

struct ProgramCheck {
  int slots = 8;       // credits of each flow
  int slices = 3;      // how many slices are replicated
  int window = 2;      // slices in flight
  bool direct = true;  // treat every message that may be described as described
};

// `programs[r]` is rank r's. Errors name rank, step, action and fault.
Status verify_programs(std::span<const Program> programs, const ProgramCheck& check);

}  // namespace sluice
