// The combine kernels per instruction set, against memcpy of the same bytes and the plain loop a user would write.
// bytes_per_second counts what a call touches: every source read and every target written.
//
//   combine_bench [--benchmark_filter=REGEX] [--benchmark_format=json]
//   names: combine/SET/TYPE/OP/nSOURCES[tree]/BYTES of one operand, memcpy/BYTES, plain_loop/BYTES
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/rng.h"
#include "device/cpu/combine.h"
#include "device/cpu/kernels.h"

namespace sluice {
namespace {

struct Case {
  const Kernels* kernels;
  DataType type;
  ReduceOp op;
  std::size_t sources;
  Tree tree;
  Form form;
};

using Buffer = std::vector<std::byte>;

// Ordinary values: floats between 1 and 2, in any type.
Buffer filled(DataType type, Form form, std::size_t bytes, std::uint64_t seed) {
  const std::size_t width = form == Form::element ? element_bytes(type) : accumulator_bytes(type);
  Buffer buffer(bytes);
  for (std::size_t at = 0; at + width <= bytes; at += width) {
    const std::uint64_t bits = mix64(seed + at);
    const double wide = 1 + static_cast<double>(bits >> 12) * 0x1p-52;
    const float narrow = static_cast<float>(wide);
    if (type == DataType::float64)
      std::memcpy(buffer.data() + at, &wide, width);
    else if (is_float(type) && form == Form::element)
      from_float(type, narrow, buffer.data() + at);
    else if (is_float(type))
      std::memcpy(buffer.data() + at, &narrow, width);
    else
      std::memcpy(buffer.data() + at, &bits, width);
  }
  return buffer;
}

void run_combine(benchmark::State& state, const Case& one) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const std::size_t width = one.form == Form::element ? element_bytes(one.type) : accumulator_bytes(one.type);
  std::vector<Buffer> buffers;
  std::vector<CombineSource> sources;
  for (std::size_t i = 0; i < one.sources; ++i) buffers.push_back(filled(one.type, one.form, bytes, i));
  for (const Buffer& buffer : buffers) sources.push_back({buffer.data(), one.form, false});
  Buffer out(bytes);
  const CombineTarget target{out.data(), one.form};
  CombineRule rule;
  rule.type = one.type;
  rule.reduction = one.op;
  rule.tree = one.tree;
  for (auto _ : state) {
    combine_with(*one.kernels, rule, sources, {&target, 1}, bytes / width);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * (one.sources + 1) * bytes));
}

void run_memcpy(benchmark::State& state) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const Buffer from(bytes, std::byte{1});
  Buffer to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 2 * bytes));
}

void run_plain_loop(benchmark::State& state) {
  const std::size_t count = static_cast<std::size_t>(state.range(0)) / sizeof(float);
  const std::vector<float> a(count, 1.5f);
  const std::vector<float> b(count, 2.5f);
  std::vector<float> to(count);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * 3 * count * sizeof(float)));
}

void sizes(benchmark::internal::Benchmark* one) { one->Arg(64)->Arg(4096)->Arg(65536)->Arg(4 << 20)->MinTime(0.05); }

void add(const Case& one) {
  const std::string label = std::string("combine/") + one.kernels->name + "/" + std::string(name(one.type)) +
                            (one.form == Form::element ? "/" : "_values/") + std::string(name(one.op)) + "/n" +
                            std::to_string(one.sources) + (one.tree == Tree::canonical ? "canonical" : "");
  sizes(benchmark::RegisterBenchmark(label.c_str(), [one](benchmark::State& state) { run_combine(state, one); }));
}

void add_all() {
  sizes(benchmark::RegisterBenchmark("memcpy", run_memcpy));
  sizes(benchmark::RegisterBenchmark("plain_loop", run_plain_loop));
  for (const Kernels* kernels : runnable_kernels())
    for (const DataType type : all_data_types())
      for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::min})
        add({kernels, type, op, 2, Tree::chain, Form::element});
  for (const DataType type : {DataType::float32, DataType::bfloat16})
    for (const std::size_t sources : {1, 4, 8})
      for (const Tree tree : {Tree::chain, Tree::canonical})
        add({runnable_kernels().back(), type, ReduceOp::sum, sources, tree, Form::element});
  add({runnable_kernels().back(), DataType::bfloat16, ReduceOp::sum, 2, Tree::chain, Form::accumulator});
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  sluice::add_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
