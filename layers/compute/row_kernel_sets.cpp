#include <array>

#include "layers/compute/row_kernels.h"

namespace sluice {

#define SLUICE_ROW_KERNEL_SET(set)                \
  namespace set {                                 \
  extern const RowKernels<float> float_kernels;   \
  extern const RowKernels<double> double_kernels; \
  }
SLUICE_ROW_KERNEL_SET(baseline)
#if defined(__x86_64__)
SLUICE_ROW_KERNEL_SET(avx2)
SLUICE_ROW_KERNEL_SET(avx512)
#endif

namespace {

// What meson.build compiles each set for; the builtin also asks whether the system saves the wide registers.
#if defined(__x86_64__)
constexpr std::array<const RowKernels<float>*, 3> kFloat{&baseline::float_kernels, &avx2::float_kernels,
                                                         &avx512::float_kernels};
constexpr std::array<const RowKernels<double>*, 3> kDouble{&baseline::double_kernels, &avx2::double_kernels,
                                                           &avx512::double_kernels};
std::size_t runnable() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return 1;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return avx512 ? 3 : 2;
}
#else
constexpr std::array<const RowKernels<float>*, 1> kFloat{&baseline::float_kernels};
constexpr std::array<const RowKernels<double>*, 1> kDouble{&baseline::double_kernels};
std::size_t runnable() { return 1; }
#endif

}  // namespace

template <>
std::span<const RowKernels<float>* const> runnable_row_kernels() {
  static const std::size_t sets = runnable();
  return std::span(kFloat).first(sets);
}

template <>
std::span<const RowKernels<double>* const> runnable_row_kernels() {
  static const std::size_t sets = runnable();
  return std::span(kDouble).first(sets);
}

template <typename T>
const RowKernels<T>& row_kernels() {
  static const RowKernels<T>& best = *runnable_row_kernels<T>().back();
  return best;
}

template const RowKernels<float>& row_kernels();
template const RowKernels<double>& row_kernels();

}  // namespace sluice
