#include "tools/perf/measure.h"

#include <algorithm>
#include <thread>

#include "base/rng.h"
#include "tools/perf/image.h"
#include "tools/perf/machine.h"

namespace sluice::tools {
namespace {

std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// What the two memories of a rank hold before and after an operation. In place there is only `receive`.
struct Images {
  Image send;
  Image receive_before;
  Image receive_after;
};

Images images_of(const PerfTest& test, const PerfCase& one, Rank rank) {
  const std::size_t element = element_bytes(one.type);
  const Extents extents = test.extents(one, rank);
  Images images;
  const Layer input{
      .at = kGuard + (one.in_place ? extents.send_at * element : 0), .count = extents.send, .source = rank};
  const std::size_t receive_at = one.in_place ? extents.receive_at : 0;
  const std::size_t receive_end = receive_at + extents.receive;
  const std::size_t send_end = extents.send_at + extents.send;
  images.send = {2 * kGuard + extents.send * element, {input}};
  images.receive_before.bytes = 2 * kGuard + (one.in_place ? std::max(receive_end, send_end) : receive_end) * element;
  if (one.in_place) images.receive_before.layers.push_back(input);
  images.receive_after = images.receive_before;
  for (const Piece& piece : test.pieces(one, rank))
    images.receive_after.layers.push_back({.at = kGuard + (receive_at + piece.at) * element,
                                           .count = piece.count,
                                           .source = piece.source,
                                           .source_at = piece.source_at});
  return images;
}

ValueRule rule_of(const PerfTest& test, const PerfCase& one, const Options& options, Order order, std::uint64_t seed) {
  return {.type = one.type,
          .reduces = test.reduces,
          .reduction = one.reduction,
          .ranks = one.ranks,
          .seed = mix64(seed),
          .sensitive = options.order_sensitive,
          .canonical = order == Order::canonical};
}

std::uint64_t digest_of(const std::byte* data, std::size_t bytes) {
  std::uint64_t digest = 0;
  for (std::size_t i = 0; i < bytes; ++i) digest = mix64(digest ^ static_cast<std::uint64_t>(data[i]));
  return digest;
}

}  // namespace

Measure::Measure(const PerfTest& test, const Options& options, Ranks& ranks)
    : test_(test), options_(options), ranks_(ranks) {
  call_options_.deadline = options.timeout;
  const bool canonical = ranks.first().runtime->config().text(Setting::order) == name(Order::canonical);
  if (test.reduces) call_options_.order = options.order.value_or(canonical ? Order::canonical : Order::fast);
  capacity_ = static_cast<std::size_t>(options.aggregate) * (round_up(options.max_bytes) + 2 * kGuard) + 64;
}

Result<Measure> Measure::create(const PerfTest& test, const Options& options, Ranks& ranks) {
  Measure measure(test, options, ranks);
  for (Member& member : ranks.members()) {
    SLUICE_TRY_ASSIGN(member.send, RankMemory::allocate(member.group, measure.capacity_, options.windows));
    SLUICE_TRY_ASSIGN(member.receive, RankMemory::allocate(member.group, measure.capacity_, options.windows));
  }
  return measure;
}

std::size_t Measure::case_bytes(const PerfCase& one) const {
  std::size_t most = 0;
  for (Rank rank = 0; rank < one.ranks; ++rank) {
    const Extents extents = test_.extents(one, rank);
    most = std::max({most, extents.send, extents.receive});
  }
  return most * element_bytes(one.type);
}

Measure::Room Measure::room_for(const PerfCase& one) const {
  Room room;
  room.bytes = case_bytes(one);
  room.stride = round_up(room.bytes) + 2 * kGuard;
  room.slots = std::max<std::size_t>(1, (capacity_ - 64) / room.stride);
  for (Member& member : ranks_.members()) room.extents.push_back(test_.extents(one, member.group.rank()));
  return room;
}

void Measure::post(const PerfCase& one, const Room& room, std::size_t member, std::size_t slot, std::size_t unalign) {
  Member& rank = ranks_.members()[member];
  const std::size_t at = slot * room.stride + kGuard + unalign;
  PerfCall call{.communicator = &rank.group,
                .send = rank.send.data() + at,
                .receive = rank.receive.data() + at,
                .options = &call_options_};
  if (one.in_place) {
    const std::size_t element = element_bytes(one.type);
    call.send = call.receive + room.extents[member].send_at * element;
    call.receive += room.extents[member].receive_at * element;
  }
  test_.post(one, call, works_);
}

void Measure::post_iteration(const PerfCase& one, const Room& room, int iteration) {
  const auto aggregate = static_cast<std::size_t>(options_.aggregate);
  for (std::size_t member = 0; member < room.extents.size(); ++member)
    for (std::size_t k = 0; k < aggregate; ++k)
      post(one, room, member, (static_cast<std::size_t>(iteration) * aggregate + k) % room.slots, options_.unalign);
}

Status Measure::warm_up(const PerfCase& one, int iterations) {
  const Room room = room_for(one);
  for (int i = 0; i < iterations; ++i) {
    post_iteration(one, room, i);
    SLUICE_TRY(wait_all(works_));
  }
  return {};
}

Result<Timing> Measure::time(const PerfCase& one) {
  SLUICE_TRY(warm_up(one, 1));
  SLUICE_TRY(ranks_.barrier());
  const Room room = room_for(one);
  Timing timing;
  double posting = 0;
  double begin = seconds_now();
  for (int i = 0; i < options_.iterations; ++i) {
    if (options_.gap) {
      const double before = seconds_now();
      std::this_thread::sleep_for(*options_.gap);
      SLUICE_TRY(ranks_.barrier());
      begin += seconds_now() - before;
    }
    const bool watched = options_.per_iteration || options_.cpu_time;
    const double iteration_begin = watched ? seconds_now() : 0;
    post_iteration(one, room, i);
    if (options_.cpu_time) posting += seconds_now() - iteration_begin;
    SLUICE_TRY(wait_all(works_));
    if (options_.per_iteration) timing.iterations.push_back((seconds_now() - iteration_begin) / options_.aggregate);
    if (options_.blocking == 1) SLUICE_TRY(ranks_.barrier());
  }
  const double all = options_.cpu_time ? posting : seconds_now() - begin;
  timing.seconds = all / options_.iterations / options_.aggregate;
  return timing;
}

Result<Check> Measure::check(const PerfCase& one, std::size_t unalign, std::uint64_t cycle) {
  const Room room = room_for(one);
  const std::size_t copies = room.bytes <= kCheckCopyBytes ? std::min(room.slots, kCheckCopies) : 1;
  const Order order = call_options_.order.value_or(Order::fast);
  std::vector<ValueRule> rules;
  for (std::size_t copy = 0; copy < copies; ++copy)
    rules.push_back(rule_of(test_, one, options_, order, 33 * cycle + copy + 1));

  for (std::size_t copy = 0; copy < copies; ++copy) paint_copy(one, rules[copy], copy * room.stride + unalign);
  for (std::size_t member = 0; member < room.extents.size(); ++member)
    for (std::size_t copy = 0; copy < copies; ++copy) post(one, room, member, copy, unalign);
  SLUICE_TRY(wait_all(works_));
  Check check;
  for (std::size_t copy = 0; copy < copies; ++copy) compare_copy(one, rules[copy], copy * room.stride + unalign, check);

  const bool one_group = ranks_.group_ranks() == ranks_.world_ranks();
  if (one_group && test_.collective == Collective::all_reduce && depends_on_order(rules.front()))
    SLUICE_TRY(same_bits_everywhere(room, copies, unalign, check));
  return check;
}

void Measure::paint_copy(const PerfCase& one, const ValueRule& rule, std::size_t at) {
  for (Member& member : ranks_.members()) {
    const Images images = images_of(test_, one, member.group.rank());
    if (!one.in_place) paint(rule, images.send, member.send.data() + at);
    paint(rule, images.receive_before, member.receive.data() + at);
  }
}

void Measure::compare_copy(const PerfCase& one, const ValueRule& rule, std::size_t at, Check& check) {
  const auto take = [&check](Rank rank, const char* what, const Differences& found) {
    if (check.wrong == 0 && found.wrong > 0) check.first = "rank " + std::to_string(rank) + ": " + what + found.first;
    check.wrong += found.wrong;
  };
  for (Member& member : ranks_.members()) {
    const Rank rank = member.group.rank();
    const Images images = images_of(test_, one, rank);
    take(rank, "", compare(rule, images.receive_after, member.receive.data() + at));
    if (!one.in_place) take(rank, "the input was changed: ", compare(rule, images.send, member.send.data() + at));
  }
}

// Whatever the order of summation, all ranks must have got the same bits.
Status Measure::same_bits_everywhere(const Room& room, std::size_t copies, std::size_t unalign, Check& check) {
  std::vector<std::vector<std::uint64_t>> digests;
  for (Member& member : ranks_.members()) {
    auto& mine = digests.emplace_back();
    for (std::size_t copy = 0; copy < copies; ++copy)
      mine.push_back(digest_of(member.receive.data() + copy * room.stride + unalign + kGuard, room.bytes));
  }
  SLUICE_TRY_ASSIGN(const auto least, ranks_.reduce(ReduceOp::min, digests));
  SLUICE_TRY_ASSIGN(const auto most, ranks_.reduce(ReduceOp::max, digests));
  for (std::size_t copy = 0; copy < copies; ++copy)
    if (least[copy] != most[copy]) {
      if (check.wrong == 0) check.first = "ranks have different bits of one sum";
      ++check.wrong;
    }
  return {};
}

}  // namespace sluice::tools
