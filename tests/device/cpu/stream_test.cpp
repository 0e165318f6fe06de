// Targets that are stored past the caches hold what others hold, at any alignment and length, in every instruction set.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

#include "device/cpu/combine.h"
#include "device/cpu/kernels.h"

namespace sluice {
namespace {

constexpr std::size_t kRoom = 3000;
using Values = std::vector<float>;

Values summed(const Kernels& kernels, const Values& a, const Values& b, std::size_t skip, std::size_t count,
              bool stream, bool second_too) {
  Values first(kRoom, -1);
  Values second(kRoom, -1);
  CombineRule rule;
  const std::array<CombineSource, 2> sources{CombineSource{a.data()}, CombineSource{b.data()}};
  const std::array<CombineTarget, 2> targets{
      CombineTarget{first.data() + skip, Form::element, stream},
      CombineTarget{second.data() + 2 * skip, Form::element, stream && second_too}};
  combine_with(kernels, rule, sources, targets, count);
  combine_with(kernels, rule, std::span(sources).first(1), std::span(targets).last(1), count / 2);  // a copy
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(Stream, StoresTheSameAsOrdinaryStores) {
  Values a(kRoom);
  Values b(kRoom);
  for (std::size_t i = 0; i < kRoom; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = static_cast<float>(3 * i + 1);
  }
  for (const Kernels* kernels : runnable_kernels())
    for (const std::size_t skip : {0u, 1u, 7u, 15u, 16u})
      for (const std::size_t count : {1u, 15u, 16u, 17u, 100u, 1024u, 2500u})
        for (const bool second_too : {false, true})
          EXPECT_EQ(summed(*kernels, a, b, skip, count, true, second_too),
                    summed(*kernels, a, b, skip, count, false, false))
              << kernels->name << " at " << skip << ", " << count << " values";
}

}  // namespace
}  // namespace sluice
