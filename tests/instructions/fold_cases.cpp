// What one element of a reduction costs in instructions, for callgrind: `folds` runs this, reads the profiles and judges them.
//
//   fold_cases   one profile for every instruction set, type and operation, and a line `case SET TYPE OPERATION ELEMENTS` for each
//
// A case: two operands of elements are combined into a third, kElements of them, in blocks that a caller would give.
#include <valgrind/callgrind.h>

#include <cstdio>
#include <string>
#include <vector>

#include "device/cpu/combine.h"
#include "device/cpu/kernels.h"

namespace sluice::test {
namespace {

constexpr std::size_t kElements = 16384;

void run(const Kernels& kernels, DataType type, ReduceOp op) {
  const std::size_t bytes = kElements * element_bytes(type);
  const std::vector<std::byte> left(bytes, std::byte{1});
  const std::vector<std::byte> right(bytes, std::byte{1});
  std::vector<std::byte> sum(bytes);
  CombineRule rule;
  rule.type = type;
  rule.reduction = op;
  rule.ranks = 2;
  rule.final = true;
  const CombineSource sources[] = {{left.data(), Form::element, true}, {right.data(), Form::element, true}};
  const CombineTarget target{sum.data(), Form::element};
  const std::string words = std::string(kernels.name) + " " + std::string(name(type)) + " " + std::string(name(op));
  CALLGRIND_ZERO_STATS;
  combine_with(kernels, rule, sources, {&target, 1}, kElements);
  CALLGRIND_DUMP_STATS_AT(words.c_str());
  std::printf("case %s %zu\n", words.c_str(), kElements);
}

}  // namespace
}  // namespace sluice::test

int main() {
  using namespace sluice;
  CALLGRIND_START_INSTRUMENTATION;
  for (const Kernels* kernels : runnable_kernels())
    for (const DataType type : all_data_types())
      for (const ReduceOp op : all_reduce_ops())
        if (check_pair(type, op).ok()) test::run(*kernels, type, op);
  return 0;
}
