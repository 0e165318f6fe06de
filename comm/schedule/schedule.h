// A schedule: a collective algorithm as a value that can be printed, parsed, compared, proved, priced, lowered.
//
//   Places   {rank, buffer, chunk}. Chunks have names, never bytes: a Layout gives their extents when an
//            operation is posted.
//   Verb     combine({from...}, {to...}, tree), executed by one named rank: each source is read once, the
//            values are folded in the tree, every target is written. copy (1->1), reduce (2->1) are its shorthands.
//            The executing rank owns at least one of the places.
//   Meaning  the steps one after another. Steps of one `moment` happen together: every source of the moment is
//            read before any of its targets is written (what an exchange of partners needs).
//   Levels   what may run at the same time: step s has a level above every step whose place it reads or overwrites;
//            the steps of one moment share a level. Levels are a function of the whole schedule, so all ranks agree.
//            A level never falls along the messages of one ordered pair of ranks: a flow's order is the schedule's.
//   Weight   in a reduction, how many ranks' inputs a value holds: weight 1 is a leaf (premulsum multiplies
//            it when it enters a sum), weight P is final (avg divides).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/types.h"
#include "device/cpu/combine.h"

namespace sluice {

enum class Collective : std::uint8_t {
  all_reduce,      // input chunks C, output chunks C
  reduce_scatter,  // input chunks P*K (block of rank r: chunks r*K..r*K+K-1), output chunks K
  all_gather,      // input chunks K, output chunks P*K
  broadcast,       // input chunks C at the root, output chunks C everywhere
  reduce,          // input chunks C everywhere, output chunks C at the root only
  gather,          // input chunks K, output chunks P*K at the root only
  scatter,         // input chunks P*K at the root, output chunks K
  all_to_all,      // input chunks P*K (block for rank r), output chunks P*K (block from rank r)
};
inline constexpr int kCollectives = 8;
std::string_view name(Collective collective);
std::optional<Collective> parse_collective(std::string_view word);
std::span<const Collective> all_collectives();
bool is_reduction(Collective collective);
bool is_rooted(Collective collective);

enum class Buffer : std::uint8_t { input, output, scratch };
std::string_view name(Buffer buffer);

struct Place {
  Rank rank = 0;
  Buffer buffer = Buffer::output;
  int chunk = 0;
  auto operator<=>(const Place&) const = default;
};

struct Step {
  Rank executor = 0;
  std::vector<Place> from;
  std::vector<Place> to;
  Tree tree = Tree::chain;
  int moment = 0;  // steps with the same number (consecutive) happen together
  // Derived by the builder, the same at every rank:
  int level = 0;
  bool alone = true;       // in its moment
  bool final = false;      // a reduction: the result has weight P
  std::vector<bool> last;  // per target: no later step reads it
  std::vector<bool> leaf;  // a reduction: per source, in a step of >= 2 sources: its weight is 1; else empty. With one
                           // rank, a copy from the input is final and its source a leaf
  bool operator==(const Step&) const = default;
};

// What a schedule is for. `chunks` is C, or K (chunks per rank's block) for the forms with blocks.
struct ScheduleShape {
  Collective collective = Collective::all_reduce;
  int ranks = 1;
  int chunks = 1;
  Rank root = 0;           // rooted forms; 0 otherwise
  int scratch_chunks = 0;  // per rank
  bool operator==(const ScheduleShape&) const = default;

  int input_chunks() const;   // of a rank that has an input (roots only, for scatter and broadcast)
  int output_chunks() const;  // of a rank that has an output
  bool has_input(Rank rank) const;
  bool has_output(Rank rank) const;
};

struct Schedule {
  std::string name;
  ScheduleShape shape;
  std::vector<Step> steps;
  int levels = 0;
  std::optional<Rank> only;  // a one-rank reading holds just the steps that touch this rank
  bool operator==(const Schedule&) const = default;
};

inline constexpr int kRanksMax = 4096;
inline constexpr int kChunksMax = 1 << 16;  // of one buffer of one rank
inline constexpr int kPlacesMax = 1 << 26;  // of all ranks together
// Messages per ordered pair of ranks and level, of steps outside a moment: more go to later levels, so that a flow needs
// few slots. A message is a remote source on its way to the executor, a result on its way to a remote target, or the offer of a
// place for one.
inline constexpr int kMessagesPerLevel = 4;

// Written in global view: both ends of a transfer in one call, so an unmatched send can't be written. With `only`
// the builder keeps just the steps that touch that rank; levels, weights and step order are the same in
// both readings. Mistakes are remembered and returned by build().
class ScheduleBuilder {
 public:
  ScheduleBuilder(std::string name, ScheduleShape shape, std::optional<Rank> only = std::nullopt);
  ~ScheduleBuilder();
  ScheduleBuilder(ScheduleBuilder&&) noexcept;
  ScheduleBuilder& operator=(ScheduleBuilder&&) noexcept;

  // Executed by `executor`; without one: by the rank of the first target.
  void combine(std::span<const Place> from, std::span<const Place> to, Tree tree = Tree::chain,
               std::optional<Rank> executor = std::nullopt);
  void copy(Place from, Place to);                // executed by the target's rank
  void reduce(Place from, Place with, Place to);  // to = from + with, in that order; executed by the target's rank
  // Everything that `steps` adds happens together.
  void together(const std::function<void()>& steps);

  // Errors: invalid_argument with step number and what is wrong (rank or chunk out of range, a place that does not
  // exist, an input as a target, several sources in a form that does not sum, no place of the executor, two results of a step
  // for one other rank, two writers of one place in a moment, a moment in which a rank overwrites what another of its
  // steps reads at home).
  Result<Schedule> build() &&;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The same steps through a builder again: levels, weights and moments as they follow from the steps, after an edit.
Result<Schedule> rederive(const Schedule& schedule);

// The text form; parse(print(s)) == s for every whole (not one-rank) schedule. One line a step:
//   sluice schedule 1
//   name ring_all_reduce
//   shape all_reduce ranks 4 chunks 4 root 0 scratch 0
//   @1 r0.in.0 + r1.in.0 -> r1.out.0            executor r1 is implied (first target), else `by r0`
//   { ... }                                     a moment of several steps
// Parsed text is checked by the same builder; limits: kRanksMax, kChunksMax, 64 MiB of text.
// Limits of parsed text beyond that: kParsedPlacesMax places.
inline constexpr std::size_t kScheduleTextMax = std::size_t{64} << 20;
inline constexpr int kParsedPlacesMax = 1 << 22;
std::string print(const Schedule& schedule);
std::string print(const Step& step);  // "r0.in.0 + r1.in.0 -> r1.out.0"
std::string print(Place place);
Result<Schedule> parse_schedule(std::string_view text);

}  // namespace sluice
