#include "comm/verify/verify.h"

#include <algorithm>
#include <string>
#include <vector>

#include "comm/schedule/places.h"
#include "comm/verify/post_condition.h"
#include "comm/verify/symbols.h"

namespace sluice {
namespace {

// Runs the steps of a schedule on symbols; `in_place`: with input and output in one memory.
class Execution {
 public:
  Execution(const Schedule& schedule, Symbols& symbols, bool in_place)
      : schedule_(schedule), shape_(schedule.shape), symbols_(symbols), in_place_(in_place) {
    per_rank_ = static_cast<std::size_t>(shape_.input_chunks() + shape_.output_chunks() + shape_.scratch_chunks);
    held_.resize(static_cast<std::size_t>(shape_.ranks));
    for (auto& row : held_) row.assign(per_rank_, kNoValue);
    for (Rank rank = 0; rank < shape_.ranks; ++rank)
      if (shape_.has_input(rank))
        for (int chunk = 0; chunk < shape_.input_chunks(); ++chunk)
          held({rank, Buffer::input, chunk}) = symbols_.leaf(rank, chunk);
  }

  Status run() {
    const std::vector<Step>& steps = schedule_.steps;
    for (std::size_t begin = 0, end = 0; begin < steps.size(); begin = end) {
      while (end < steps.size() && steps[end].moment == steps[begin].moment) ++end;
      SLUICE_TRY(run_moment(begin, end));
    }
    return {};
  }

  Symbol result(Rank rank, int chunk) { return held({rank, Buffer::output, chunk}); }

 private:
  Symbol& held(Place place) {
    if (in_place_) place = in_place_name(shape_, place);
    int at = place.chunk;
    if (place.buffer != Buffer::input) at += shape_.input_chunks();
    if (place.buffer == Buffer::scratch) at += shape_.output_chunks();
    return held_[static_cast<std::size_t>(place.rank)][static_cast<std::size_t>(at)];
  }

  Status run_moment(std::size_t begin, std::size_t end) {
    results_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      sources_.clear();
      for (const Place& place : schedule_.steps[i].from) sources_.push_back(held(place));
      Result<Symbol> sum = symbols_.combine(sources_, schedule_.steps[i].tree);
      if (!sum.ok()) return fault(i, named(i, sum.error().text));
      results_.push_back(*sum);
    }
    if (in_place_ && end - begin > 1) SLUICE_TRY(check_home_reads(begin, end));
    for (std::size_t i = begin; i < end; ++i)
      for (const Place& place : schedule_.steps[i].to) held(place) = symbols_.stored(results_[i - begin], place.buffer);
    return {};
  }

  // In one memory, what a rank reads at home in a moment may not be what another of its steps writes in it.
  Status check_home_reads(std::size_t begin, std::size_t end) {
    struct Written {
      Place place;
      Rank executor;
      std::size_t step;
      bool operator<(const Written& other) const {
        return std::tie(place, executor) < std::tie(other.place, other.executor);
      }
    };
    std::vector<Written> written;
    for (std::size_t i = begin; i < end; ++i)
      for (const Place& place : schedule_.steps[i].to) written.push_back({place, schedule_.steps[i].executor, i});
    std::sort(written.begin(), written.end());
    for (std::size_t i = begin; i < end; ++i)
      for (const Place& place : schedule_.steps[i].from) {
        const Written sought{in_place_name(shape_, place), schedule_.steps[i].executor, i};
        const auto found = std::lower_bound(written.begin(), written.end(), sought);
        if (sought.place.rank != sought.executor || found == written.end() || sought < *found || found->step == i)
          continue;
        return fault(i, print(place) + " is read at home and overwritten in the same moment");
      }
    return {};
  }

  // Adds which source it was.
  std::string named(std::size_t i, const std::string& text) const {
    const auto empty = std::find(sources_.begin(), sources_.end(), kNoValue);
    if (empty == sources_.end()) return text;
    return print(schedule_.steps[i].from[static_cast<std::size_t>(empty - sources_.begin())]) + " was never written";
  }
  Status fault(std::size_t i, const std::string& what) const {
    return {Code::invalid_argument, "step " + std::to_string(i) + " (" + print(schedule_.steps[i]) + "): " + what};
  }

  const Schedule& schedule_;
  const ScheduleShape& shape_;
  Symbols& symbols_;
  bool in_place_;
  std::size_t per_rank_ = 0;
  std::vector<std::vector<Symbol>> held_;  // per rank and place
  std::vector<Symbol> sources_;
  std::vector<Symbol> results_;
};

Status run_and_check(const Schedule& schedule, bool in_place, OrderClass& order) {
  Symbols symbols(schedule.shape);
  Execution execution(schedule, symbols, in_place);
  SLUICE_TRY(execution.run());
  return check_post_condition(
      schedule.shape, symbols, [&](Rank rank, int chunk) { return execution.result(rank, chunk); },
      schedule.shape.chunks, order);
}

// What the builder derives must be what the schedule says: the lowering relies on it.
Status check_derived(const Schedule& schedule) {
  SLUICE_TRY_ASSIGN(const Schedule derived, rederive(schedule));
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& given = schedule.steps[i];
    const Step& want = derived.steps[i];
    const std::string step = "step " + std::to_string(i) + " (" + print(given) + "): ";
    if (given.level != want.level)
      return {Code::invalid_argument, step + "level " + std::to_string(given.level) +
                                          " is not what follows from its places: " + std::to_string(want.level)};
    if (given.final != want.final || given.leaf != want.leaf)
      return {Code::invalid_argument,
              step + "the marks for leaves and the final sum are not what follows from the steps"};
  }
  if (schedule.levels != derived.levels)
    return {Code::invalid_argument, std::to_string(schedule.levels) + " levels are not the " +
                                        std::to_string(derived.levels) + " of the steps"};
  return {};
}

Error in_schedule(const Schedule& schedule, const Error& error) {
  const std::string head = "schedule " + schedule.name + ": ";
  return {error.code, error.text.starts_with(head) ? error.text : head + error.text};
}

}  // namespace

std::string_view name(OrderClass order) { return order == OrderClass::canonical ? "canonical" : "fixed"; }

Result<Proof> verify(const Schedule& schedule) {
  if (schedule.only)
    return Error{Code::invalid_argument, "schedule " + schedule.name + " holds only the steps of rank " +
                                             std::to_string(*schedule.only) + "; a proof needs the whole"};
  if (Status derived = check_derived(schedule); !derived.ok()) return in_schedule(schedule, derived.error());
  Proof proof;
  if (Status apart = run_and_check(schedule, false, proof.order); !apart.ok())
    return in_schedule(schedule, apart.error());
  OrderClass in_place_order = OrderClass::fixed;
  proof.in_place = run_and_check(schedule, true, in_place_order).ok() && in_place_order == proof.order;
  return proof;
}

}  // namespace sluice
