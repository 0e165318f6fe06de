#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/assert.h"

namespace sluice {
namespace {

std::atomic<LogLevel> g_level{LogLevel::warn};  // relaxed: a filter, orders nothing

const char* word(LogLevel level) {
  switch (level) {
    case LogLevel::off: return "off";
    case LogLevel::error: return "error";
    case LogLevel::warn: return "warn";
    case LogLevel::info: return "info";
    case LogLevel::debug: return "debug";
  }
  return "?";
}

}  // namespace

void set_log_level(LogLevel level) { g_level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return g_level.load(std::memory_order_relaxed); }

void log(LogLevel level, int rank, std::string_view text) {
  if (level > log_level() || level == LogLevel::off) return;
  std::string line = "sluice";
  if (rank >= 0) line += " [rank " + std::to_string(rank) + "]";
  line += std::string(" ") + word(level) + ": ";
  line += text;
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);  // one call, so that lines of ranks do not mix
}

void assertion_failed(const char* condition, const char* file, int line, const char* text) {
  std::fprintf(stderr, "sluice: internal error at %s:%d: %s (%s). Please report it.\n", file, line, text, condition);
  std::abort();
}

}  // namespace sluice
