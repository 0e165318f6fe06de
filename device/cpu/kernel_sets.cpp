#include "device/cpu/kernels.h"

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

std::span<const Kernels* const> runnable_kernels() {
#if defined(__x86_64__)
  static constexpr std::array<const Kernels*, 3> kSets{&baseline::kernels, &avx2::kernels, &avx512::kernels};
  static const std::size_t runnable = [] {
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2")) return 1;
    const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? 3 : 2;
  }();
  return std::span(kSets).first(runnable);
#else
  static constexpr std::array<const Kernels*, 1> kSets{&baseline::kernels};
  return kSets;
#endif
}

}  // namespace sluice
