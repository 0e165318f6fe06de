#include "comm/executor/call.h"

#include <limits>

namespace sluice::detail {
namespace {

constexpr std::size_t kBytesMax = std::size_t{1} << 62;

Error bad(const Call& call, Rank rank, const std::string& what) {
  return {Code::invalid_argument, std::string(name(call.kind)) + " on rank " + std::to_string(rank) + ": " + what};
}

// elements * bytes of each, or nullopt when that is more than any buffer holds.
std::optional<std::size_t> bytes_of(std::size_t elements, std::size_t times, DataType type) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(elements, times, &bytes) || __builtin_mul_overflow(bytes, element_bytes(type), &bytes) ||
      bytes > kBytesMax)
    return std::nullopt;
  return bytes;
}

// The end of the furthest block, in bytes.
Result<std::size_t> blocks_bytes(const Call& call, const Blocks& blocks, std::string_view which, Rank rank, int ranks) {
  const auto size = static_cast<std::size_t>(ranks);
  if (blocks.counts.size() != size || (!blocks.offsets.empty() && blocks.offsets.size() != size))
    return bad(call, rank,
               std::string(which) + " names " + std::to_string(blocks.counts.size()) + " counts and " +
                   std::to_string(blocks.offsets.size()) + " offsets; give one for each of the " +
                   std::to_string(ranks) + " ranks");
  std::size_t end = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t offset = blocks.offsets.empty() ? next : blocks.offsets[i];
    std::size_t last = 0;
    if (__builtin_add_overflow(offset, blocks.counts[i], &last) || !bytes_of(last, 1, call.type))
      return bad(call, rank,
                 std::string(which) + " block " + std::to_string(i) + " (count " + std::to_string(blocks.counts[i]) +
                     ") is larger than any memory");
    if (blocks.counts[i] != 0) end = std::max(end, last);
    next = last;
  }
  return end * element_bytes(call.type);
}

bool in_is_blocks(Collective collective) {
  return collective == Collective::reduce_scatter || collective == Collective::scatter ||
         collective == Collective::all_to_all;
}
bool out_is_blocks(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::gather ||
         collective == Collective::all_to_all;
}

Result<std::size_t> side_bytes(const Call& call, bool is_blocks, const Blocks& blocks, std::string_view which,
                               Rank rank, int ranks) {
  if (is_blocks && call.uneven) return blocks_bytes(call, blocks, which, rank, ranks);
  const auto bytes = bytes_of(call.count, is_blocks ? static_cast<std::size_t>(ranks) : 1, call.type);
  if (!bytes)
    return bad(call, rank,
               "count " + std::to_string(call.count) + " of " + std::string(name(call.type)) + " on " +
                   std::to_string(ranks) + " ranks is larger than any memory");
  return *bytes;
}

Error null_pointer(const Call& call, std::string_view field, std::size_t bytes, Rank rank) {
  return bad(call, rank,
             std::string(field) + " is a null pointer, but " + std::to_string(bytes) + " bytes are needed there");
}

// The address at which `out` lies when it is in place.
std::uintptr_t in_place_start(const Call& call, const CallExtent& extent, Rank rank) {
  const auto own = static_cast<std::size_t>(rank);
  const auto own_offset = [&](const Blocks& blocks) {
    if (!call.uneven) return own * call.count;
    if (!blocks.offsets.empty()) return blocks.offsets[own];
    std::size_t before = 0;
    for (std::size_t i = 0; i < own; ++i) before += blocks.counts[i];
    return before;
  };
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const std::size_t bytes = element_bytes(call.type);
  if (!extent.has_in || !extent.has_out || in_is_blocks(call.collective) == out_is_blocks(call.collective)) return in;
  return in_is_blocks(call.collective) ? in + own_offset(call.in_blocks) * bytes
                                       : in - own_offset(call.out_blocks) * bytes;
}

}  // namespace

Status check_rank(std::string_view call, std::string_view field, Rank value, Rank rank, int ranks) {
  if (value >= 0 && value < ranks) return {};
  return {Code::invalid_argument, "on rank " + std::to_string(rank) + ": " + std::string(call) + "'s " +
                                      std::string(field) + " is " + std::to_string(value) +
                                      ", but must be a rank of the communicator, 0.." + std::to_string(ranks - 1)};
}

Status check_message(MessageWords words, Message message, Rank rank, int ranks) {
  SLUICE_TRY(check_rank(words.call, words.peer, message.peer, rank, ranks));
  const auto bad = [&](const std::string& what) {
    return Status(Code::invalid_argument, std::string(words.call) + " on rank " + std::to_string(rank) + ": " + what);
  };
  if (static_cast<std::size_t>(message.type) >= static_cast<std::size_t>(kDataTypes))
    return bad("data type " + std::to_string(static_cast<int>(message.type)) + " is unknown");
  if (!bytes_of(message.count, 1, message.type))
    return bad("count " + std::to_string(message.count) + " is larger than any memory");
  if (message.data == nullptr && message.count > 0)
    return bad("data is a null pointer, but count is " + std::to_string(message.count));
  return {};
}

Result<CallExtent> check_call(const Call& call, Rank rank, int ranks) {
  if (static_cast<std::size_t>(call.type) >= static_cast<std::size_t>(kDataTypes))
    return bad(call, rank, "data type " + std::to_string(static_cast<int>(call.type)) + " is unknown");
  if (is_reduction(call.collective)) SLUICE_TRY(check_pair(call.type, call.reduction.op));
  if (is_rooted(call.collective)) SLUICE_TRY(check_rank(name(call.kind), "root", call.root, rank, ranks));
  const ScheduleShape shape{call.collective, ranks, 1, std::max(call.root, 0), 0};
  CallExtent extent;
  extent.has_in = shape.has_input(rank);
  extent.has_out = shape.has_output(rank);
  if (extent.has_in) {
    SLUICE_TRY_ASSIGN(extent.in_bytes,
                      side_bytes(call, in_is_blocks(call.collective), call.in_blocks, "in", rank, ranks));
  }
  if (extent.has_out) {
    SLUICE_TRY_ASSIGN(extent.out_bytes,
                      side_bytes(call, out_is_blocks(call.collective), call.out_blocks, "out", rank, ranks));
  }
  SLUICE_TRY(check_pointers(call, extent, rank));
  return extent;
}

Status check_pointers(const Call& call, const CallExtent& extent, Rank rank) {
  if (extent.has_in && extent.in_bytes > 0 && call.in == nullptr)
    return null_pointer(call, "in", extent.in_bytes, rank);
  if (extent.has_out && extent.out_bytes > 0 && call.out == nullptr)
    return null_pointer(call, "out", extent.out_bytes, rank);
  return {};
}

Result<bool> check_in_place(const Call& call, const CallExtent& extent, Rank rank, int ranks) {
  if (!extent.has_in || !extent.has_out || extent.in_bytes == 0 || extent.out_bytes == 0) return false;
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  if (in + extent.in_bytes <= out || out + extent.out_bytes <= in) return false;
  const bool at_start = out == in_place_start(call, extent, rank);
  const bool all_to_all_v = call.uneven && call.collective == Collective::all_to_all;
  if (at_start && (!all_to_all_v || ranks == 1)) return true;
  return bad(call, rank,
             all_to_all_v ? std::string("in and out overlap; all_to_all_v has no in-place form, give it two buffers")
                          : "in and out overlap, but not as the in-place form asks (see communicator.h)");
}

}  // namespace sluice::detail
