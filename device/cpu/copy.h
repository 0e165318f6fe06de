// memcpy for large pieces. The C library copies from a few KiB on, and up to about a cache's size, by one string instruction, which
// some virtual machines run at a tenth of the speed of vector loads and stores unless both ends are aligned alike (glibc 2.36 on an
// EPYC 7003 under KVM: 1.9 against 35 GB/s for 256 KiB). Vectors are as fast everywhere else.
#pragma once

#include <cstddef>
#include <cstring>

#include "device/cpu/kernels.h"

namespace sluice {

inline constexpr std::size_t kCopyByVectorsFrom = 1024;  // below, memcpy uses vectors itself

inline void copy_bytes(const Kernels& kernels, void* to, const void* from, std::size_t bytes) {
  if (bytes < kCopyByVectorsFrom)
    std::memcpy(to, from, bytes);
  else
    kernels.copy(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

// No overlap. Any thread.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  copy_bytes(*runnable_kernels().back(), to, from, bytes);
}

// The same past the caches, for what nobody reads soon.
inline void stream_bytes(void* to, const void* from, std::size_t bytes) {
  runnable_kernels().back()->stream(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  store_fence();
}

}  // namespace sluice
