#include "base/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace sluice {
namespace {

constexpr Nanoseconds kCalibration = std::chrono::milliseconds(1);

#if defined(__x86_64__)
std::uint64_t counter() { return __rdtsc(); }

// At one rate in every state of power (AMD64 Architecture Programmer's Manual 3, CPUID 8000_0007h, EDX bit 8).
bool counter_is_steady() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(0x80000007, &eax, &ebx, &ecx, &edx) != 0 && (edx & (1U << 8)) != 0;
}
#else
std::uint64_t counter() { return 0; }
bool counter_is_steady() { return false; }
#endif

}  // namespace

RealClock::RealClock() : counter_(counter_is_steady()), began_(now()), began_ticks_(counter()) {}

RealClock& RealClock::instance() {
  static RealClock clock;
  return clock;
}

std::uint64_t RealClock::ticks() const { return counter_ ? counter() : Clock::ticks(); }

double RealClock::seconds_per_tick() const {
  if (!counter_) return Clock::seconds_per_tick();
  Nanoseconds passed = now() - began_;
  while (passed < kCalibration) passed = now() - began_;
  return std::chrono::duration<double>(passed).count() / static_cast<double>(counter() - began_ticks_);
}

}  // namespace sluice
