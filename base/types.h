// Element types, reduction operations and order classes, as every room knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace sluice {

using Rank = int;  // rank in the communicator, unless a name says `world_rank`

// Numbered as in NCCL's ABI (ncclDataType_t), so that the face of that name translates by a cast.
enum class DataType : std::uint8_t {
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  bfloat16,
  float8_e4m3,
  float8_e5m2,
};
inline constexpr int kDataTypes = 12;

enum class ReduceOp : std::uint8_t { sum, prod, max, min, avg, premulsum, band, bor, bxor };
inline constexpr int kReduceOps = 9;

// What a sum's result may depend on. `fast`: the algorithm chosen (still the same bits in every run with
// the same choice). `canonical`: the logical index of the summands alone.
enum class Order : std::uint8_t { fast, canonical };

// A reduction with what it needs besides its name; converts from a plain ReduceOp.
struct Reduction {
  ReduceOp op = ReduceOp::sum;
  double factor = 1;  // premulsum only: every summand is multiplied by it, in the accumulator's type

  Reduction() = default;
  Reduction(ReduceOp kind) : op(kind) {}  // NOLINT(google-explicit-constructor)
  static Reduction premul_sum(double factor) {
    Reduction result(ReduceOp::premulsum);
    result.factor = factor;
    return result;
  }
  bool operator==(const Reduction&) const = default;
};

// Bytes of one element, and of the value it is accumulated in: float32 for floats of up to 32 bits,
// otherwise the type itself.
std::size_t element_bytes(DataType type);
std::size_t accumulator_bytes(DataType type);

bool is_float(DataType type);

// invalid_argument or unsupported (band, bor, bxor on floats), with a text that names the pair.
Status check_pair(DataType type, ReduceOp op);

std::string_view name(DataType type);  // "float32", also the word used in files and traces
std::string_view name(ReduceOp op);
std::string_view name(Order order);
std::optional<DataType> parse_data_type(
    std::string_view word);  // also nccl-tests' words: half, float, double, f8e4m3 ...
std::optional<ReduceOp> parse_reduce_op(std::string_view word);  // also "mulsum"

std::span<const DataType> all_data_types();
std::span<const ReduceOp> all_reduce_ops();

}  // namespace sluice
