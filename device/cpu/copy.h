// memcpy for large pieces. The C library copies from a few KiB on, and up to about a cache's size, by one string instruction. Where a
// copy goes to a place a little further in its page than it comes from, as from a page to what malloc gives, it can be very slow
// (glibc 2.36, EPYC 7003 under KVM: 256 KiB to a place 16 bytes further 114 us, by vectors 6.5 us); vectors are as fast everywhere else.
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
