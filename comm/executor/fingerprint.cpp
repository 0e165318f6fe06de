#include "comm/executor/fingerprint.h"

#include <xxhash.h>

#include <array>
#include <bit>
#include <cstring>

#include "comm/algorithms/algorithms.h"

namespace sluice {
namespace {

constexpr std::array<std::string_view, 18> kKinds{
    "none",    "all_reduce", "reduce_scatter", "all_gather",       "broadcast", "reduce",    "gather",
    "scatter", "all_to_all", "all_gather_v",   "reduce_scatter_v", "gather_v",  "scatter_v", "all_to_all_v",
    "barrier", "split",      "close",          "send/receive"};

std::string posted(Rank a, Rank b, std::string_view field, std::string_view value_a, std::string_view value_b) {
  return "rank " + std::to_string(a) + " posted " + std::string(field) + " " + std::string(value_a) + ", rank " +
         std::to_string(b) + " posted " + std::string(field) + " " + std::string(value_b);
}

std::string algorithm_named(std::uint32_t hash) {
  for (const Algorithm& one : all_algorithms())
    if (hash_word(one.name) == hash) return std::string(one.name);
  return "with hash " + std::to_string(hash);  // of another version
}

}  // namespace

std::string_view name(OperationKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }

FingerprintWords words(const Fingerprint& f) {
  return {f.communicator,
          f.sequence,
          f.count,
          f.blocks,
          f.factor,
          (std::uint64_t{f.algorithm} << 32) | std::bit_cast<std::uint32_t>(f.root),
          (std::uint64_t{f.slice_bytes} << 32) | (std::uint64_t{static_cast<std::uint8_t>(f.kind)} << 24) |
              (std::uint64_t{static_cast<std::uint8_t>(f.type)} << 16) |
              (std::uint64_t{static_cast<std::uint8_t>(f.op)} << 8) | static_cast<std::uint8_t>(f.order)};
}

std::optional<Fingerprint> from_words(const FingerprintWords& all) {
  Fingerprint f;
  f.communicator = all[0];
  f.sequence = all[1];
  f.count = all[2];
  f.blocks = all[3];
  f.factor = all[4];
  f.algorithm = static_cast<std::uint32_t>(all[5] >> 32);
  f.root = std::bit_cast<std::int32_t>(static_cast<std::uint32_t>(all[5]));
  f.slice_bytes = static_cast<std::uint32_t>(all[6] >> 32);
  const auto byte = [&](int shift) { return static_cast<std::uint8_t>(all[6] >> shift); };
  if (byte(24) >= kKinds.size() || byte(16) >= kDataTypes || byte(8) >= kReduceOps || byte(0) > 1) return std::nullopt;
  f.kind = static_cast<OperationKind>(byte(24));
  f.type = static_cast<DataType>(byte(16));
  f.op = static_cast<ReduceOp>(byte(8));
  f.order = static_cast<Order>(byte(0));
  return f;
}

std::uint64_t hash_but_number(const Fingerprint& fingerprint) {
  Fingerprint numberless = fingerprint;
  numberless.sequence = 0;
  const FingerprintWords all = words(numberless);
  return XXH3_64bits(all.data(), sizeof(all));
}

std::uint32_t hash_word(std::string_view word) { return XXH32(word.data(), word.size(), 0); }

std::uint64_t hash_counts(std::span<const std::size_t> counts) {
  return XXH3_64bits(counts.data(), counts.size_bytes());
}

std::optional<std::string> difference(const Fingerprint& a, Rank rank_a, const Fingerprint& b, Rank rank_b) {
  const auto differ = [&](std::string_view field, std::string_view value_a, std::string_view value_b) {
    return posted(rank_a, rank_b, field, value_a, value_b);
  };
  const auto numbers = [&](std::string_view field, auto value_a, auto value_b) {
    return differ(field, std::to_string(value_a), std::to_string(value_b));
  };
  if (a.sequence != b.sequence) return numbers("operation number", a.sequence, b.sequence);
  if (a.kind != b.kind) return differ("operation", name(a.kind), name(b.kind));
  if (a.type != b.type) return differ("type", name(a.type), name(b.type));
  if (a.count != b.count) return numbers("count", a.count, b.count);
  if (a.blocks != b.blocks)
    return differ("counts per rank", "with hash " + std::to_string(a.blocks), "with hash " + std::to_string(b.blocks));
  if (a.root != b.root) return numbers("root", a.root, b.root);
  if (a.op != b.op) return differ("reduction", name(a.op), name(b.op));
  if (a.factor != b.factor) return numbers("factor", std::bit_cast<double>(a.factor), std::bit_cast<double>(b.factor));
  if (a.order != b.order) return differ("order", name(a.order), name(b.order));
  if (a.algorithm != b.algorithm)
    return differ("algorithm", algorithm_named(a.algorithm), algorithm_named(b.algorithm));
  if (a.slice_bytes != b.slice_bytes) return numbers("slice bytes", a.slice_bytes, b.slice_bytes);
  return std::nullopt;
}

std::vector<std::byte> encode(std::span<const Fingerprint> fingerprints) {
  std::vector<std::byte> bytes(fingerprints.size() * kFingerprintBytes);
  for (std::size_t i = 0; i < fingerprints.size(); ++i) {
    const FingerprintWords all = words(fingerprints[i]);
    std::memcpy(bytes.data() + i * kFingerprintBytes, all.data(), sizeof(all));
  }
  return bytes;
}

std::vector<Fingerprint> decode_fingerprints(std::span<const std::byte> bytes) {
  if (bytes.size() % kFingerprintBytes != 0 || bytes.size() > kFingerprintsMax * kFingerprintBytes) return {};
  std::vector<Fingerprint> fingerprints;
  for (std::size_t at = 0; at < bytes.size(); at += kFingerprintBytes) {
    FingerprintWords all{};
    std::memcpy(all.data(), bytes.data() + at, sizeof(all));
    const auto one = from_words(all);
    if (!one) return {};
    fingerprints.push_back(*one);
  }
  return fingerprints;
}

}  // namespace sluice
