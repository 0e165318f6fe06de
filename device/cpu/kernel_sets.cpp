#include "device/cpu/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#endif

namespace sluice {

namespace baseline {
extern const Kernels kernels;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}
#endif

namespace {

#if defined(__x86_64__)
constexpr std::array<const Kernels*, 3> kSets{&baseline::kernels, &avx2::kernels, &avx512::kernels};

bool converts_float16() {  // asked of the processor itself: clang 14's builtin does not know the word
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// What meson.build compiles each set for; the builtin also asks whether the system saves the wide registers.
std::size_t runnable() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !converts_float16()) return 1;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 3 : 2;
}
#else
constexpr std::array<const Kernels*, 1> kSets{&baseline::kernels};
std::size_t runnable() { return kSets.size(); }
#endif

}  // namespace

void store_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

std::span<const Kernels* const> runnable_kernels() {
  static const std::size_t sets = runnable();
  return std::span(kSets).first(sets);
}

}  // namespace sluice
