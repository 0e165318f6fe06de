// What ranks must agree on when they post an operation. Its 32-bit digest travels in every slot; the whole is compared over the
// control tree when a digest differs or a wait gets long.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace sluice {

enum class OperationKind : std::uint8_t {
  none,
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  all_gather_v,
  reduce_scatter_v,
  gather_v,
  scatter_v,
  all_to_all_v,
  barrier,
  split,
  close,
  point_to_point,
};
std::string_view name(OperationKind kind);

struct Fingerprint {
  std::uint64_t communicator = 0;
  std::uint64_t sequence = 0;   // of the communicator's collectives, from 1
  std::uint64_t count = 0;      // 0 where ranks may differ
  std::uint64_t blocks = 0;     // hash of the counts that all ranks must share in a v-form
  std::uint64_t factor = 0;     // bits of premulsum's factor
  std::uint32_t algorithm = 0;  // hash of its name
  std::int32_t root = -1;
  std::uint32_t slice_bytes = 0;
  OperationKind kind = OperationKind::none;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Order order = Order::fast;
  bool operator==(const Fingerprint&) const = default;
};

// What a slot carries: the hash of all fields but the number, which is the same for every call that is made again, mixed with it.
std::uint64_t hash_but_number(const Fingerprint& fingerprint);
constexpr std::uint32_t digest(std::uint64_t hash, std::uint64_t sequence) {
  std::uint64_t mixed = (hash ^ (sequence * 0x9e3779b97f4a7c15ULL)) * 0xd6e8feb86659fd93ULL;
  mixed ^= mixed >> 32;
  return static_cast<std::uint32_t>(mixed * 0xd6e8feb86659fd93ULL >> 32);
}
inline std::uint32_t digest(const Fingerprint& fingerprint) {
  return digest(hash_but_number(fingerprint), fingerprint.sequence);
}
std::uint32_t hash_word(std::string_view word);
std::uint64_t hash_counts(std::span<const std::size_t> counts);

// "rank 3 posted count 5, rank 1 posted count 6": the first field in which they differ; nullopt when they agree.
std::optional<std::string> difference(const Fingerprint& a, Rank rank_a, const Fingerprint& b, Rank rank_b);

// The fields as words, in a fixed order: what is hashed, kept and sent.
inline constexpr std::size_t kFingerprintWords = 7;
using FingerprintWords = std::array<std::uint64_t, kFingerprintWords>;
FingerprintWords words(const Fingerprint& fingerprint);
std::optional<Fingerprint> from_words(const FingerprintWords& all);  // nullopt: these words are no fingerprint

inline constexpr std::size_t kFingerprintBytes = sizeof(FingerprintWords);
inline constexpr std::size_t kFingerprintsMax = 64;
std::vector<std::byte> encode(std::span<const Fingerprint> fingerprints);        // at most kFingerprintsMax
std::vector<Fingerprint> decode_fingerprints(std::span<const std::byte> bytes);  // empty: they are none

}  // namespace sluice
