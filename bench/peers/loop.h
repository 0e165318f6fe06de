// The measuring loop that every library's program runs, and what such a program gives it.
//
//   Commands  one per line, from the pipe DIRECTORY/RANK.commands; each has one answer, in DIRECTORY/RANK.answers:
//               check OP BYTES warm|cold             ok | wrong WHAT | unsupported WHY | error WHAT
//               time OP BYTES warm|cold ITERATIONS   time NANOSECONDS | error WHAT    (of one iteration, at this rank)
//               free                                 ok                                (gives the buffers back)
//             The first line that a rank writes is `ready NAME`. The end of the commands is the end of the program.
//   Idle      a rank that has no command sleeps in read(): it takes nothing from the library that is being measured.
//   Buffers   warm: one pair. cold: as many pairs as make kColdBytes, taken in turn and never the same ones soon again.
//   Cores     with no more ranks than cores, each rank's thread stays on a core of its own, for every library alike.
//   Source    plain C++, nothing of Sluice.
#pragma once

#include <cstddef>
#include <string>

#include "bench/peers/work.h"

namespace peers {

inline constexpr std::size_t kColdBytes = std::size_t{128} << 20;  // four times a last-level cache of 32 MiB
inline constexpr std::size_t kPage = 4096;

// One library, joined with its other ranks. Calls are collective, in one order at all ranks, and come from one thread.
class Library {
 public:
  virtual ~Library() = default;
  virtual std::string name() const = 0;  // with its version
  virtual Place place() const = 0;
  virtual bool can(Op op) const = 0;
  virtual bool barrier() = 0;
  // Memory of the kind that is measured, at a whole page; null if there is none. release() frees all of it.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void release() = 0;
  // One operation, complete at this rank when it returns. broadcast: in place, in `out`.
  virtual bool run(const Work& work, float* in, float* out) = 0;
  virtual std::string problem() const = 0;  // why the last call returned false or null
};

// Serves commands until they end. Returns the exit status of the program.
int serve(Library& library, const std::string& directory);

}  // namespace peers
