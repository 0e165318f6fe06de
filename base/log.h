// One line per event on standard error: `sluice [rank 3] warn: text`. Whoever first calls something an
// error logs it, once. The level comes from the configuration (SLUICE_LOG); any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice {

enum class LogLevel : std::uint8_t { off, error, warn, info, debug };

void set_log_level(LogLevel level);
LogLevel log_level();

// `rank` < 0: no rank is named.
void log(LogLevel level, int rank, std::string_view text);

}  // namespace sluice
