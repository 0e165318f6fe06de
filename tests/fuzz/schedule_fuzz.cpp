// Any bytes as a schedule's text: refused with a reason, or a schedule that prints to text which parses to the same
// schedule, and that can be proved and lowered (or refused) without harm.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "comm/lower/program.h"
#include "comm/schedule/schedule.h"
#include "comm/verify/verify.h"

namespace {

// Larger ones cost time and show nothing new.
constexpr int kRanksProvedMax = 16;
constexpr std::size_t kStepsProvedMax = 256;

void prove_and_lower(const sluice::Schedule& schedule) {
  const auto proof = sluice::verify(schedule);
  SLUICE_ASSERT(proof.ok() || !proof.error().text.empty(), "a refusal says why");
  const std::vector<bool> all(static_cast<std::size_t>(schedule.shape.ranks), true);
  for (sluice::Rank rank = 0; rank < schedule.shape.ranks; ++rank)
    for (const bool in_place : {false, true})
      for (const std::vector<bool>& windows : {std::vector<bool>(), all}) {
        const auto program = sluice::lower(schedule, rank, {in_place, windows});
        SLUICE_ASSERT(program.ok() || !program.error().text.empty(), "a refusal says why");
      }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const auto schedule = sluice::parse_schedule({reinterpret_cast<const char*>(data), bytes});
  if (!schedule.ok()) {
    SLUICE_ASSERT(!schedule.error().text.empty(), "a refusal says why");
    return 0;
  }
  const auto again = sluice::parse_schedule(sluice::print(*schedule));
  SLUICE_ASSERT(again.ok() && *again == *schedule, "the text form round-trips");
  if (schedule->shape.ranks <= kRanksProvedMax && schedule->steps.size() <= kStepsProvedMax) prove_and_lower(*schedule);
  return 0;
}
