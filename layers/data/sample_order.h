// The order in which an epoch visits its samples: a permutation that is computed, not stored.
//
//   Meaning  order(i) for i = 0..n-1 takes each of 0..n-1 once; a function of (seed, epoch, i) and n alone, so any rank of
//            any layout finds any sample by its number.
//   Cost     constant memory; below 4 rounds of walking on average.
//   Source   a four-round Feistel network with cycle walking: Black, Rogaway, "Ciphers with Arbitrary Finite Domains", 2002.
#pragma once

#include <cstdint>

namespace sluice {

class SampleOrder {
 public:
  // samples >= 1
  SampleOrder(std::uint64_t samples, std::uint64_t seed, std::uint64_t epoch);
  // 0 <= i < samples
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  std::uint64_t shuffle(std::uint64_t value) const;

  std::uint64_t samples_;
  std::uint64_t key_;
  int half_bits_;  // the network permutes [0, 4^half_bits), the smallest such range that holds the samples
};

}  // namespace sluice
