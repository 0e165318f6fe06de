// Cores of this machine, by the kernel's numbers: as text, and as what a thread may run on.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/result.h"

namespace sluice {

using Cores = std::vector<int>;  // ascending, each once; empty: any

inline constexpr int kCoreMax = 1023;

// "any", or numbers and ranges joined by '+', as in "2-3+6". nullopt: it is neither.
std::optional<Cores> parse_cores(std::string_view text);
std::string to_text(const Cores& cores);

// Those that the calling thread may run on.
Cores allowed_cores();
// `cores` not empty. Errors: system.
Status pin(std::thread& thread, const Cores& cores);

}  // namespace sluice
