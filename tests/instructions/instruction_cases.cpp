// What a small operation costs in instructions, for callgrind: `gate` runs this, reads the profiles and judges them.
//
//   instruction_cases            every case, one profile each, and a line `case NAME OPERATIONS` for each that was counted
//   instruction_cases --build    what decides about the machine code of this program, in one line
//
// A case: everything is warmed up (schedules, programs, flows), then kOperations operations are counted, all ranks together.
#include <valgrind/callgrind.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstdio>
#include <string_view>

#include "tests/instructions/counted_ranks.h"

namespace sluice::test {
namespace {

constexpr int kWarmUps = 64;     // more than a flow has slots
constexpr int kOperations = 64;  // counted
constexpr std::size_t kBufferBytes = 32768;

void all_reduce(CountedRank& rank, std::size_t bytes) {
  rank.works.push_back(rank.world.all_reduce({rank.in.data(), rank.out.data(), bytes / sizeof(float)}, ReduceOp::sum));
}

struct Case {
  const char* name;
  int ranks;
  CountedRanks::Post post;
};

constexpr Case kCases[] = {
    {"all_reduce_float32_8B_2_ranks", 2, [](CountedRank& rank) { all_reduce(rank, 8); }},
    {"all_reduce_float32_8B_4_ranks", 4, [](CountedRank& rank) { all_reduce(rank, 8); }},
    {"all_reduce_float32_32KiB_2_ranks", 2, [](CountedRank& rank) { all_reduce(rank, 32768); }},
    {"all_reduce_float32_32KiB_2_ranks_windows", 2,
     [](CountedRank& rank) {
       rank.works.push_back(
           rank.world.all_reduce({rank.window_in.data(), rank.window_out.data(), 8192}, ReduceOp::sum));
     }},
    {"all_reduce_bfloat16_4KiB_4_ranks_canonical", 4,
     [](CountedRank& rank) {
       CallOptions options;
       options.order = Order::canonical;
       rank.works.push_back(
           rank.world.all_reduce({rank.in.data(), rank.out.data(), 2048, DataType::bfloat16}, ReduceOp::sum, options));
     }},
    {"all_to_all_float32_1KiB_4_ranks", 4,
     [](CountedRank& rank) {
       rank.works.push_back(rank.world.all_to_all({rank.in.data(), rank.out.data(), 256}));
     }},
    {"broadcast_float32_8B_4_ranks", 4,
     [](CountedRank& rank) {
       rank.works.push_back(rank.world.broadcast({rank.in.data(), rank.out.data(), 2}, 0));
     }},
    {"send_receive_8B", 2,
     [](CountedRank& rank) {
       rank.works.push_back(rank.world.rank() == 0 ? rank.world.send(rank.in.data(), 8, DataType::uint8, 1)
                                                   : rank.world.receive(rank.out.data(), 8, DataType::uint8, 0));
     }},
    {"barrier_4_ranks", 4, [](CountedRank& rank) { rank.works.push_back(rank.world.barrier()); }},
    {"two_all_reduces_in_two_lanes_8B_2_ranks", 2,
     [](CountedRank& rank) {
       all_reduce(rank, 8);
       rank.works.push_back(rank.urgent.all_reduce({rank.in.data() + 64, rank.out.data() + 64, 2}, ReduceOp::sum));
     }},
};

Status run(const Case& one, CountedRanks::Run which, PassLog& log) {
  CountedRanks ranks(one.ranks, kBufferBytes, which, log);
  for (int i = 0; i < kWarmUps; ++i) SLUICE_TRY(ranks.operation(one.post, false));
  if (which == CountedRanks::Run::second) CALLGRIND_ZERO_STATS;
  for (int i = 0; i < kOperations; ++i) SLUICE_TRY(ranks.operation(one.post, true));
  if (which == CountedRanks::Run::second) CALLGRIND_DUMP_STATS_AT(one.name);
  return {};
}

Status run_twice(const Case& one) {
  PassLog log;
  SLUICE_TRY(run(one, CountedRanks::Run::first, log));
  return run(one, CountedRanks::Run::second, log);
}

// What our run-time dispatch and libc's go by. valgrind shows one and the same processor everywhere, which has no AVX-512; it
// has AVX2, FMA and the conversion of float16 only where the real one does.
void print_processor() {
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  const bool float16 = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  __builtin_cpu_init();
  std::printf("processor x86_64%s%s%s%s\n", __builtin_cpu_supports("avx2") ? " avx2" : "",
              __builtin_cpu_supports("fma") ? " fma" : "", float16 ? " f16c" : "",
              __builtin_cpu_supports("avx512f") ? " avx512" : "");
#else
  std::printf("processor unknown\n");
#endif
}

int run_all() {
  print_processor();
  for (const Case& one : kCases) {
    if (const Status done = run_twice(one); !done.ok()) {
      std::fprintf(stderr, "instruction_cases: %s: %s\n", one.name, done.text().c_str());
      return 1;
    }
    std::printf("case %s %d\n", one.name, kOperations);
  }
  return 0;
}

}  // namespace
}  // namespace sluice::test

int main(int arguments, char** argument) {
  if (arguments == 1) return sluice::test::run_all();
  if (arguments == 2 && std::string_view(argument[1]) == "--build") return std::puts(SLUICE_BUILD) < 0 ? 1 : 0;
  std::fprintf(stderr, "usage: instruction_cases [--build]\n");
  return 2;
}
