#include "layers/initial_values.h"

#include "base/rng.h"

namespace sluice {

std::uint64_t name_key(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix64(hash);
}

double initial_value(std::uint64_t seed, std::uint64_t key, Index element, double spread) {
  constexpr double kRootOfThree = 1.7320508075688772;  // a uniform value in [-1, 1) has standard deviation 1 / sqrt 3
  const std::uint64_t bits = mix64(mix64(seed ^ key) + static_cast<std::uint64_t>(element));
  const double uniform = static_cast<double>(bits >> 11) * 0x1p-52 - 1.0;
  return uniform * kRootOfThree * spread;
}

template <typename T>
void set_initial_values(std::string_view name, std::uint64_t seed, double spread, View<T> tensor) {
  const std::uint64_t key = name_key(name);
  for (Index i = 0; i < tensor.rows; ++i)
    for (Index j = 0; j < tensor.columns; ++j)
      tensor.row(i)[j] = spread == 0 ? T{1} : static_cast<T>(initial_value(seed, key, i * tensor.columns + j, spread));
}

template void set_initial_values(std::string_view, std::uint64_t, double, View<float>);
template void set_initial_values(std::string_view, std::uint64_t, double, View<double>);

}  // namespace sluice
