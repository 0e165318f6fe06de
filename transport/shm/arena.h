// A rank's arena: one memfd that it and the ranks of its host map. Rings of its outgoing flows, its windows and its
// doorbell lie in it.
//
//   Sparse    the size is address space; pages are real memory from their first touch.
//   Trust     sealed against shrinking, so that no peer can make a touch end in SIGBUS; what is allocated where is
//             known to the owner alone, outside of the arena. A peer can still write nonsense into it: everything read
//             from it is checked by whoever reads.
//   Registry  ranks that are threads of one process share one mapping of each arena. Two mappings of one memory would
//             work for the program, but not for its checkers: to a sanitizer they are different addresses, and it would
//             see neither the races nor the edges between the two. So this file holds the one mutable global of the
//             room: a table of the arenas that this process has mapped, by their random names, under a mutex.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/unique_fd.h"
#include "transport/mapping.h"
#include "transport/slot_ring.h"

namespace sluice {

using ArenaName = std::array<std::uint64_t, 2>;  // random

// At the start of the arena.
struct ArenaHead {
  Doorbell doorbell;
  // Raised by a peer after it wrote to its stream, so that a spinning owner looks there without a system call.
  // Release -> acquire is not needed: the stream carries the message.
  alignas(kCacheLine) std::atomic<std::uint32_t> attention;
  // What the owner shows of its urgency (shm_urgency.cpp). A hint, which orders nothing; a peer that lies makes others yield too often.
  alignas(kCacheLine) std::atomic<std::uint64_t> urgency;
};
inline constexpr std::size_t kArenaHeadBytes = 4096;
inline constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
inline constexpr std::size_t kArenaBytesMin = std::size_t{1} << 20;
inline constexpr std::size_t kArenaBytesMax = std::size_t{1} << 44;
static_assert(sizeof(ArenaHead) <= kArenaHeadBytes);

class Arena {
 public:
  // An arena of this rank: `bytes`, or less where address space or file size are limited. `event_fd` wakes the owner;
  // it is duplicated. Errors: out_of_resource, system.
  static Result<std::shared_ptr<Arena>> create(std::size_t bytes, int event_fd);
  // A peer's, as it came over the stream. Errors: refused (a descriptor that is not a sealed file of `bytes` bytes),
  // out_of_resource.
  static Result<std::shared_ptr<Arena>> join(const ArenaName& name, std::size_t bytes, UniqueFd memory, UniqueFd event);
  ~Arena();

  const ArenaName& name() const { return name_; }
  std::byte* data() const { return mapping_.data(); }
  std::size_t bytes() const { return mapping_.bytes(); }
  ArenaHead& head() const { return *reinterpret_cast<ArenaHead*>(mapping_.data()); }
  Bell bell() const { return {&head().doorbell, event_.get(), fences_}; }
  int memory_fd() const { return memory_.get(); }
  int event_fd() const { return event_.get(); }

  // Asks for huge pages in the whole ones of a part, until it is given back; the system may have none for shared memory (shmem_enabled).
  void want_huge_pages(std::size_t offset, std::size_t bytes);
  // Gives the whole pages within a freed part back to the machine; they read as zeros again.
  void give_back(std::size_t offset, std::size_t bytes);

 private:
  void advise(std::size_t offset, std::size_t bytes, std::size_t page, int advice);
  Arena(const ArenaName& name, UniqueFd memory, UniqueFd event, Mapping mapping);
  static std::shared_ptr<Arena> enter(
      std::shared_ptr<Arena> made);  // into the registry, unless another thread was first

  ArenaName name_;
  UniqueFd memory_;
  UniqueFd event_;
  Mapping mapping_;
  bool fences_;  // see Bell
};
// shared_ptr: an arena is used by its owner and by each peer in the process, and the last one unmaps it.

}  // namespace sluice
