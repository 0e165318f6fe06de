// Loads, stores and copies of the kernels, at any byte alignment. Internal linkage on purpose: see convert.h.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

template <typename T>
T load(const std::byte* from, std::size_t index) {
  T value;
  __builtin_memcpy(&value, from + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* to, std::size_t index, T value) {
  __builtin_memcpy(to + index * sizeof(T), &value, sizeof(T));
}

// --- copies, through the caches and past them ---

#if defined(__AVX512F__)
using Line = __m512i;
inline void stream_line(std::byte* to, Line line) { _mm512_stream_si512(reinterpret_cast<Line*>(to), line); }
#elif defined(__AVX__)
using Line = __m256i;
inline void stream_line(std::byte* to, Line line) { _mm256_stream_si256(reinterpret_cast<Line*>(to), line); }
#elif defined(__SSE2__)
using Line = __m128i;
inline void stream_line(std::byte* to, Line line) { _mm_stream_si128(reinterpret_cast<Line*>(to), line); }
#else
using Line = std::uint64_t;
inline void stream_line(std::byte* to, Line line) { store(to, 0, line); }
#endif
inline void store_line(std::byte* to, Line line) { store(to, 0, line); }

// Whole cache lines of the target, in order: one that is written in parts may be read first after all.
template <void (*kStore)(std::byte*, Line)>
void copy_lines(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kCacheLine = 64;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kCacheLine;
  std::size_t at = past == 0 ? 0 : kCacheLine - past;
  if (at > bytes) at = bytes;
  __builtin_memcpy(to, from, at);
  for (; at + kCacheLine <= bytes; at += kCacheLine) {
    for (std::size_t part = 0; part < kCacheLine; part += sizeof(Line))
      kStore(to + at + part, load<Line>(from + at + part, 0));
    __asm__ __volatile__("");  // else compilers see memcpy in it, and call that
  }
  __builtin_memcpy(to + at, from + at, bytes - at);
}

}  // namespace
}  // namespace sluice
