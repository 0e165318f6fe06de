// Seeded chance: the same seed gives the same numbers on every machine and in every release.
//
//   Source   Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014 (SplitMix64).
#pragma once

#include <cstdint>

namespace sluice {

// A well-mixed function of 64 bits: what a value at a logical index is drawn from.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Rng {
 public:
  explicit Rng(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    const std::uint64_t value = mix64(state_);
    state_ += 0x9e3779b97f4a7c15u;
    return value;
  }
  // 0 <= result < bound; bound >= 1.
  std::uint64_t below(std::uint64_t bound) {
    __extension__ using Wide = unsigned __int128;  // both compilers have it; ISO C++ does not
    return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t state_;
};

}  // namespace sluice
