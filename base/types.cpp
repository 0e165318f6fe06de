#include "base/types.h"

#include <array>
#include <string>

#include "base/assert.h"

namespace sluice {
namespace {

struct TypeRow {
  DataType type;
  std::string_view word;
  std::string_view other_word;  // as nccl-tests spells it
  std::size_t bytes;
  std::size_t accumulator;
  bool floating;
};

constexpr std::array<TypeRow, kDataTypes> kTypes{{
    {DataType::int8, "int8", "char", 1, 1, false},
    {DataType::uint8, "uint8", "uchar", 1, 1, false},
    {DataType::int32, "int32", "int", 4, 4, false},
    {DataType::uint32, "uint32", "uint", 4, 4, false},
    {DataType::int64, "int64", "long", 8, 8, false},
    {DataType::uint64, "uint64", "ulong", 8, 8, false},
    {DataType::float16, "float16", "half", 2, 4, true},
    {DataType::float32, "float32", "float", 4, 4, true},
    {DataType::float64, "float64", "double", 8, 8, true},
    {DataType::bfloat16, "bfloat16", "bf16", 2, 4, true},
    {DataType::float8_e4m3, "float8_e4m3", "f8e4m3", 1, 4, true},
    {DataType::float8_e5m2, "float8_e5m2", "f8e5m2", 1, 4, true},
}};

constexpr std::array<std::string_view, kReduceOps> kOps{"sum",       "prod", "max", "min", "avg",
                                                        "premulsum", "band", "bor", "bxor"};

constexpr std::array<DataType, kDataTypes> kAllTypes = [] {
  std::array<DataType, kDataTypes> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kTypes[i].type;
  return all;
}();

constexpr std::array<ReduceOp, kReduceOps> kAllOps = [] {
  std::array<ReduceOp, kReduceOps> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<ReduceOp>(i);
  return all;
}();

const TypeRow& row(DataType type) {
  SLUICE_ASSERT(static_cast<std::size_t>(type) < kTypes.size(), "a data type must pass check_pair before it is used");
  return kTypes[static_cast<std::size_t>(type)];
}

}  // namespace

std::size_t element_bytes(DataType type) { return row(type).bytes; }
std::size_t accumulator_bytes(DataType type) { return row(type).accumulator; }
bool is_float(DataType type) { return row(type).floating; }

Status check_pair(DataType type, ReduceOp op) {
  if (static_cast<std::size_t>(type) >= kTypes.size())
    return {Code::invalid_argument, "data type " + std::to_string(static_cast<int>(type)) + " is unknown"};
  if (static_cast<std::size_t>(op) >= kOps.size())
    return {Code::invalid_argument, "reduction " + std::to_string(static_cast<int>(op)) + " is unknown"};
  const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
  if (bitwise && is_float(type))
    return {Code::unsupported, "reduction " + std::string(name(op)) + " is defined on integers only, not on " +
                                   std::string(name(type)) + "; reinterpret the buffer as an integer type"};
  return {};
}

std::string_view name(DataType type) { return row(type).word; }
std::string_view name(ReduceOp op) {
  SLUICE_ASSERT(static_cast<std::size_t>(op) < kOps.size(), "a reduction must pass check_pair before it is used");
  return kOps[static_cast<std::size_t>(op)];
}
std::string_view name(Order order) { return order == Order::fast ? "fast" : "canonical"; }

std::optional<DataType> parse_data_type(std::string_view word) {
  for (const TypeRow& one : kTypes)
    if (word == one.word || word == one.other_word) return one.type;
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view word) {
  if (word == "mulsum") return ReduceOp::premulsum;
  for (std::size_t i = 0; i < kOps.size(); ++i)
    if (word == kOps[i]) return static_cast<ReduceOp>(i);
  return std::nullopt;
}

std::span<const DataType> all_data_types() { return kAllTypes; }
std::span<const ReduceOp> all_reduce_ops() { return kAllOps; }

}  // namespace sluice
