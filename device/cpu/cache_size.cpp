#include "device/cpu/cache_size.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace sluice {
namespace {

constexpr std::size_t kUnknown = std::size_t{32} << 20;
constexpr int kCachesMax = 8;  // the system numbers a processor's caches from 0

// "32768K"; 0: there is no such cache.
std::size_t cache_bytes(int index) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  std::size_t number = 0;
  char unit = 0;
  if (!(file >> number)) return 0;
  file >> unit;
  return number << (unit == 'K' ? 10 : unit == 'M' ? 20 : unit == 'G' ? 30 : 0);
}

std::size_t look() {
  std::size_t largest = 0;
  for (int index = 0; index < kCachesMax; ++index) largest = std::max(largest, cache_bytes(index));
  return largest != 0 ? largest : kUnknown;
}

}  // namespace

std::size_t last_level_cache_bytes() {
  static const std::size_t bytes = look();  // the machine stays what it is
  return bytes;
}

}  // namespace sluice
