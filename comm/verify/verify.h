// Proofs on schedules: the steps are executed on symbols, and each collective's post-condition is checked as
// "which inputs of which ranks, each exactly once".
//
//   Cost     O(steps x sources x P/64) time, O(distinct values) memory: one interned node per different value.
//   Proves   the schedule's meaning (steps in order, moments together). What waits, signals, slots and slices add is
//            proved on lowered programs: verify_program.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "comm/schedule/schedule.h"

namespace sluice {

// What the sums of a schedule depend on. `canonical`: on logical indices only (the tree over ranks that splits at the
// largest power of two below N, inner values kept in accumulators, i.e. in scratch places). `fixed`: on the schedule.
enum class OrderClass : std::uint8_t { canonical, fixed };
std::string_view name(OrderClass order);

struct Proof {
  OrderClass order = OrderClass::fixed;  // of the weakest sum in it; canonical for collectives that do not sum
  bool in_place = false;                 // also right when input and output are the same memory (see schedule/places.h)
};

// Errors: invalid_argument: "step 12 (r1.in.0 + r2.out.0 -> r2.out.0): ..." naming step, rank and fault: a source never
// written, an input counted twice, a place that ends without its value, a value that is not the expected one.
Result<Proof> verify(const Schedule& schedule);

}  // namespace sluice
