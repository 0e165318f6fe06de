// A schedule run on numbers, the dumb way: one thread, one step after another, every buffer a vector. It shares nothing with the
// executor, the lowering or the verifier.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/schedule/schedule.h"

namespace sluice::test {

enum class Numbers : std::uint8_t {
  whole,            // small whole numbers: sums are exact in any order
  order_sensitive,  // bfloat16 of widely different size: almost any other order, or a rounding on the way, shows in the sum
};

struct ScheduleRun {
  std::size_t count = 5;  // elements of the message (all_reduce, broadcast, reduce) or of a block
  Numbers numbers = Numbers::whole;
  Order order = Order::fast;  // canonical: scratch keeps sums unrounded
  bool in_place = false;
  bool average = false;    // the final sum is divided by the ranks
  float leaf_factor = 1;   // every summand is multiplied by it
  std::uint64_t seed = 1;  // of the inputs
  // Runs level by level, the moments of a level in an order drawn from this seed, instead of in program order.
  std::optional<std::uint64_t> shuffle;
};

// Per rank: the output (empty where there is none). Places that no step wrote hold kUntouched.
using Outputs = std::vector<std::vector<float>>;
inline constexpr float kUntouched = -12345;

Outputs run_schedule(const Schedule& schedule, const ScheduleRun& run);

// What every output should be, from the inputs alone. Sums: in the canonical tree, rounded once.
Outputs expected_outputs(const ScheduleShape& shape, const ScheduleRun& run);

// The parts that both this and tests/support/run_programs.h need.
namespace detail {
// Elements of a place: [begin, end) of its buffer.
struct Extent {
  std::size_t begin = 0;
  std::size_t end = 0;
};
Extent extent_of(const ScheduleShape& shape, Place place, std::size_t count);
std::vector<float> input_of(const ScheduleShape& shape, const ScheduleRun& run, Rank rank);
// `value` as a place of this kind keeps it.
float rounded(float value, Buffer buffer, const ScheduleRun& run);
float fold(const std::vector<float>& values, Tree tree);

// Every rank's buffers, in place with one memory for both as NCCL's in-place forms have it.
class Memory {
 public:
  // Both must outlive the memory. Scratch has room for whole chunks.
  Memory(const ScheduleShape& shape, const ScheduleRun& run);
  std::span<float> place(Place place);
  Outputs outputs();

 private:
  const ScheduleShape& shape_;
  const ScheduleRun& run_;
  std::vector<std::vector<float>> in_;
  std::vector<std::vector<float>> out_;
  std::vector<std::vector<float>> scratch_;
};
}  // namespace detail

}  // namespace sluice::test
