#include "comm/lanes/cores.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "base/numbers.h"

namespace sluice {
namespace {

static_assert(kCoreMax < CPU_SETSIZE);

}  // namespace

std::optional<Cores> parse_cores(std::string_view text) {
  if (text == "any") return Cores{};
  std::optional<Cores> cores = parse_number_list(text, '+', kCoreMax);
  if (!cores) return cores;
  std::sort(cores->begin(), cores->end());
  cores->erase(std::unique(cores->begin(), cores->end()), cores->end());
  return cores;
}

std::string to_text(const Cores& cores) {
  if (cores.empty()) return "any";
  std::string text;
  for (std::size_t i = 0; i < cores.size();) {
    std::size_t last = i;
    while (last + 1 < cores.size() && cores[last + 1] == cores[last] + 1) ++last;
    text += (text.empty() ? "" : "+") + std::to_string(cores[i]);
    if (last != i) text += "-" + std::to_string(cores[last]);
    i = last + 1;
  }
  return text;
}

Cores allowed_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  Cores cores;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return cores;
  for (int core = 0; core <= kCoreMax; ++core)
    if (CPU_ISSET(static_cast<std::size_t>(core), &allowed)) cores.push_back(core);
  return cores;
}

Status pin(std::thread& thread, const Cores& cores) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int core : cores) CPU_SET(static_cast<std::size_t>(core), &wanted);
  const int failed = pthread_setaffinity_np(thread.native_handle(), sizeof wanted, &wanted);
  return failed == 0 ? Status() : system_error("can't pin a thread to cores " + to_text(cores), failed);
}

}  // namespace sluice
