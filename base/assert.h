// Our own mistakes end the process with a sentence. SLUICE_ASSERT stays on in release (control path);
// SLUICE_DEBUG_ASSERT is for what runs per chunk.
#pragma once

namespace sluice {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line, const char* text);
}  // namespace sluice

#define SLUICE_ASSERT(condition, text) \
  ((condition) ? static_cast<void>(0) : ::sluice::assertion_failed(#condition, __FILE__, __LINE__, text))
#ifdef NDEBUG
#define SLUICE_DEBUG_ASSERT(condition, text) static_cast<void>(0)
#else
#define SLUICE_DEBUG_ASSERT(condition, text) SLUICE_ASSERT(condition, text)
#endif
