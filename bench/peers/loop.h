// The measuring loop that every library's program runs, and what such a program gives it.
//
//   Commands  one per line, from the pipe DIRECTORY/RANK.commands; each has one answer, in DIRECTORY/RANK.answers:
//               check OP BYTES warm|cold             ok | wrong WHAT | unsupported WHY | error WHAT
//               time OP BYTES warm|cold ITERATIONS   time NANOSECONDS | error WHAT    (of one iteration, at this rank)
//               free                                 ok                                (gives the buffers back)
//               wait MILLISECONDS                    wait PART | error WHAT            (see below)
//             The first line that a rank writes is `ready NAME`. The end of the commands is the end of the program.
//   Idle      a rank that has no command sleeps in read(): it takes nothing from the library that is being measured.
//   Waiting   `wait`: rank 0 comes to a barrier so much later; the others say which part of a core their process used meanwhile,
//             the first kWaitGraceMs not counted.
//   Buffers   warm: one pair. cold: as many pairs as make kColdBytes, taken in turn and never the same ones soon again; once through
//             all of their pages before the clock runs if the library maps them.
//   Cores     with no more ranks than cores, each rank's thread stays on a core of its own, for every library alike.
//   Source    plain C++, nothing of Sluice.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "bench/peers/work.h"

namespace peers {

inline constexpr std::size_t kColdBytes = std::size_t{128} << 20;  // four times a last-level cache of 32 MiB
inline constexpr std::size_t kPage = 4096;
inline constexpr int kWaitGraceMs = 10;

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
  // Its ranks use each other's memory at an address of their own, so that each page is a fault the first time.
  virtual bool maps_others() const { return false; }
  virtual std::string problem() const = 0;  // why the last call returned false or null
};

// Serves commands until they end. Returns the exit status of the program.
int serve(Library& library, const std::string& directory);

// Where the pairs of buffers of one case lie, at each rank: pair i at i * stride.
struct PairLayout {
  std::size_t in_stride = 0;  // bytes
  std::size_t out_stride = 0;
  std::size_t pairs = 1;
};
PairLayout layout_of(const Work& work, bool cold);

// The calling thread, as rank `place.rank`, on a core of its own, if there are enough.
void stay_on_a_core(Place place);

// The pipes alone: hands each command of `rank` to `answer` and sends what it returns.
int serve_lines(const std::string& directory, int rank, const std::string& name,
                const std::function<std::string(const std::string& line)>& answer);

}  // namespace peers
