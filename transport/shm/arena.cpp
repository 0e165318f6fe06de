#include "transport/shm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>

namespace sluice {
namespace {

constexpr std::size_t kPage = 4096;

struct Registry {
  std::mutex mutex;
  std::map<ArenaName, std::weak_ptr<Arena>> arenas;  // guarded by mutex
};
Registry& registry() {
  static Registry table;  // see the head of arena.h
  return table;
}

// A file beyond the limit would not be an error but a signal.
std::size_t within_file_limit(std::size_t bytes) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<std::size_t>(limit.rlim_cur));
  return bytes / kPage * kPage;
}

Result<UniqueFd> make_memory(std::size_t bytes) {
  UniqueFd memory(::memfd_create("sluice-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return system_error("memfd_create", errno);
  if (::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    return system_error("can't make an arena of " + std::to_string(bytes) + " bytes", errno);
  if (::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_error("can't seal an arena", errno);
  return memory;
}

bool same_file(int a, int b) {
  struct stat of_a {};
  struct stat of_b {};
  return ::fstat(a, &of_a) == 0 && ::fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

Status check_memory(int memory, std::size_t bytes) {
  struct stat file {};
  if (::fstat(memory, &file) != 0 || !S_ISREG(file.st_mode))
    return {Code::refused, "the arena's descriptor is not memory"};
  if (static_cast<std::size_t>(file.st_size) != bytes)
    return {Code::refused,
            "an arena of " + std::to_string(file.st_size) + " bytes was announced with " + std::to_string(bytes)};
  const int seals = ::fcntl(memory, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return {Code::refused, "the arena is not sealed against shrinking"};
  return {};
}

}  // namespace

Arena::Arena(const ArenaName& name, UniqueFd memory, UniqueFd event, Mapping mapping)
    : name_(name),
      memory_(std::move(memory)),
      event_(std::move(event)),
      mapping_(std::move(mapping)),
      fences_(!has_sleep_barrier() || head().doorbell.barriers.load(std::memory_order_relaxed) == 0) {}

Result<std::shared_ptr<Arena>> Arena::create(std::size_t bytes, int event_fd) {
  ArenaName name{};
  if (::getrandom(name.data(), sizeof name, 0) != static_cast<ssize_t>(sizeof name))
    return system_error("getrandom", errno);
  UniqueFd event(::fcntl(event_fd, F_DUPFD_CLOEXEC, 0));
  if (!event) return system_error("can't duplicate a descriptor", errno);

  Status last;
  for (bytes = within_file_limit(bytes); bytes >= kArenaBytesMin; bytes = bytes / 2 / kPage * kPage) {
    auto memory = make_memory(bytes);
    if (!memory.ok()) {
      last = memory.status();
      continue;
    }
    auto mapping = Mapping::share(memory->get(), bytes);
    if (mapping.ok()) {
      const auto head = reinterpret_cast<ArenaHead*>(mapping->data());
      head->doorbell.barriers.store(has_sleep_barrier() ? 1 : 0, std::memory_order_relaxed);
      return enter(std::shared_ptr<Arena>(new Arena(name, *std::move(memory), std::move(event), *std::move(mapping))));
    }
    last = mapping.status();
  }
  if (last.ok())
    return Error{Code::out_of_resource, "the limit on file sizes (ulimit -f) leaves no room for a shared arena"};
  return last.error();
}

Result<std::shared_ptr<Arena>> Arena::join(const ArenaName& name, std::size_t bytes, UniqueFd memory, UniqueFd event) {
  if (bytes < kArenaBytesMin || bytes > kArenaBytesMax || bytes % kPage != 0)
    return Error{Code::refused, "an arena of " + std::to_string(bytes) + " bytes can't be"};
  SLUICE_TRY(check_memory(memory.get(), bytes));
  const int flags = ::fcntl(event.get(), F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0) return Error{Code::refused, "the descriptor to wake a peer could block"};
  {
    const std::lock_guard lock(registry().mutex);
    const auto known = registry().arenas.find(name);
    if (known != registry().arenas.end())
      if (auto arena = known->second.lock()) {
        if (same_file(arena->memory_.get(), memory.get())) return arena;
        return Error{Code::refused, "the arena's name belongs to another arena"};
      }
  }
  SLUICE_TRY_ASSIGN(Mapping mapping, Mapping::share(memory.get(), bytes));
  return enter(std::shared_ptr<Arena>(new Arena(name, std::move(memory), std::move(event), std::move(mapping))));
}

std::shared_ptr<Arena> Arena::enter(std::shared_ptr<Arena> made) {
  const std::lock_guard lock(registry().mutex);
  std::weak_ptr<Arena>& entry = registry().arenas[made->name_];
  if (auto first = entry.lock()) return first;
  entry = made;
  return made;
}

Arena::~Arena() {
  const std::lock_guard lock(registry().mutex);
  const auto entry = registry().arenas.find(name_);
  if (entry != registry().arenas.end() && entry->second.expired()) registry().arenas.erase(entry);
}

// The whole pages of a part; failing leaves them as they are.
void Arena::advise(std::size_t offset, std::size_t bytes, std::size_t page, int advice) {
  const std::size_t begin = (offset + page - 1) / page * page;
  const std::size_t end = (offset + bytes) / page * page;
  if (begin < end) ::madvise(data() + begin, end - begin, advice);
}

void Arena::want_huge_pages(std::size_t offset, std::size_t bytes) {
  advise(offset, bytes, kHugePageBytes, MADV_HUGEPAGE);
}

void Arena::give_back(std::size_t offset, std::size_t bytes) {
  advise(offset, bytes, kPage, MADV_REMOVE);
  advise(offset, bytes, kHugePageBytes, MADV_NOHUGEPAGE);
}

}  // namespace sluice
