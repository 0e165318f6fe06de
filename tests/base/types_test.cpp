#include "base/types.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(DataType, IsNumberedAsInNcclsAbi) {
  EXPECT_EQ(static_cast<int>(DataType::int8), 0);
  EXPECT_EQ(static_cast<int>(DataType::float16), 6);
  EXPECT_EQ(static_cast<int>(DataType::float64), 8);
  EXPECT_EQ(static_cast<int>(DataType::bfloat16), 9);
  EXPECT_EQ(static_cast<int>(DataType::float8_e5m2), 11);
  EXPECT_EQ(static_cast<int>(ReduceOp::max), 2);
  EXPECT_EQ(static_cast<int>(ReduceOp::avg), 4);
}

TEST(DataType, EveryOneIsListedOnceInOrder) {
  ASSERT_EQ(all_data_types().size(), static_cast<std::size_t>(kDataTypes));
  for (std::size_t i = 0; i < all_data_types().size(); ++i) EXPECT_EQ(static_cast<std::size_t>(all_data_types()[i]), i);
  ASSERT_EQ(all_reduce_ops().size(), static_cast<std::size_t>(kReduceOps));
  for (std::size_t i = 0; i < all_reduce_ops().size(); ++i) EXPECT_EQ(static_cast<std::size_t>(all_reduce_ops()[i]), i);
}

TEST(DataType, SizesFollowFromTheNames) {
  for (const DataType type : all_data_types()) {
    const std::string word(name(type));
    const std::string digits = word.substr(word.find_first_of("0123456789"));
    EXPECT_EQ(element_bytes(type) * 8, std::stoul(digits)) << word;
    EXPECT_EQ(is_float(type), word.find("float") != std::string::npos) << word;
    EXPECT_EQ(accumulator_bytes(type), is_float(type) && element_bytes(type) < 4 ? 4 : element_bytes(type)) << word;
  }
}

TEST(Words, RoundTripAndTakeOtherSpellings) {
  for (const DataType type : all_data_types()) EXPECT_EQ(parse_data_type(name(type)), type);
  for (const ReduceOp op : all_reduce_ops()) EXPECT_EQ(parse_reduce_op(name(op)), op);
  EXPECT_EQ(parse_data_type("half"), DataType::float16);
  EXPECT_EQ(parse_data_type("f8e4m3"), DataType::float8_e4m3);
  EXPECT_EQ(parse_reduce_op("mulsum"), ReduceOp::premulsum);
  EXPECT_FALSE(parse_data_type("float128"));
  EXPECT_FALSE(parse_data_type(""));
  EXPECT_FALSE(parse_reduce_op("SUM"));
}

TEST(CheckPair, RefusesBitwiseOperationsOnFloatsByName) {
  for (const DataType type : all_data_types())
    for (const ReduceOp op : all_reduce_ops()) {
      const bool bitwise = op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor;
      const Status checked = check_pair(type, op);
      EXPECT_EQ(checked.ok(), !(bitwise && is_float(type)));
      if (checked.ok()) continue;
      EXPECT_EQ(checked.code(), Code::unsupported);
      EXPECT_NE(checked.text().find(name(type)), std::string::npos);
      EXPECT_NE(checked.text().find(name(op)), std::string::npos);
    }
}

TEST(CheckPair, RefusesNumbersThatAreNoTypeOrOperation) {
  EXPECT_EQ(check_pair(static_cast<DataType>(12), ReduceOp::sum).code(), Code::invalid_argument);
  EXPECT_EQ(check_pair(DataType::int8, static_cast<ReduceOp>(9)).code(), Code::invalid_argument);
}

TEST(Reduction, ComesFromAnOperationOrAFactor) {
  const Reduction plain = ReduceOp::max;
  EXPECT_EQ(plain.op, ReduceOp::max);
  EXPECT_EQ(Reduction::premul_sum(0.25).op, ReduceOp::premulsum);
  EXPECT_EQ(Reduction::premul_sum(0.25).factor, 0.25);
}

}  // namespace
}  // namespace sluice
