#include "comm/lanes/cores.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

namespace sluice {
namespace {

static_assert(kCoreMax < CPU_SETSIZE);

std::optional<int> parse_core(std::string_view text) {
  int core = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), core);
  if (error != std::errc{} || end != text.data() + text.size() || core < 0 || core > kCoreMax) return std::nullopt;
  return core;
}

}  // namespace

std::optional<Cores> parse_cores(std::string_view text) {
  Cores cores;
  if (text == "any") return cores;
  for (bool more = true; more;) {
    const std::size_t end = text.find('+');
    const std::string_view part = text.substr(0, end);
    const std::size_t dash = part.find('-');
    const auto first = parse_core(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_core(part.substr(dash + 1));
    if (!first || !last || *first > *last) return std::nullopt;
    for (int core = *first; core <= *last; ++core) cores.push_back(core);
    more = end != std::string_view::npos;
    if (more) text.remove_prefix(end + 1);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
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
