// The ranks that this thread drives: one, or all of a loop world. Everything is posted on each of them before any is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "comm/communicator.h"
#include "tools/perf/split.h"

namespace sluice::tools {

// Memory of one rank: plain, or a window.
class RankMemory {
 public:
  RankMemory() = default;
  // Errors: out_of_resource names the rank and the bytes.
  static Result<RankMemory> allocate(Communicator& communicator, std::size_t bytes, bool window);
  std::byte* data() const { return data_; }

 private:
  struct Free {
    void operator()(void* memory) const;
  };
  std::unique_ptr<void, Free> plain_;
  WindowBuffer window_;
  std::byte* data_ = nullptr;
};

struct Member {
  std::unique_ptr<Runtime> runtime;
  Communicator world;
  Communicator group;  // what the collective runs on: the world, or a part of it
  int color = 0;
  RankMemory send;
  RankMemory receive;
};

class Ranks {
 public:
  // Without a split rule and a lane the group is the world. Errors: those of split; unsupported for a split of a loop world, where one
  // thread can't be in several collective calls at once.
  static Result<Ranks> create(std::vector<std::unique_ptr<Runtime>> runtimes, const std::optional<SplitRule>& split,
                              const std::optional<Lane>& lane = {});

  std::vector<Member>& members() { return members_; }
  Member& first() { return members_.front(); }
  bool reports() { return first().world.rank() == 0; }  // writes to standard output
  int world_ranks() { return first().world.ranks(); }
  int group_ranks() { return first().group.ranks(); }

  Status barrier();
  // One vector per member, of one length on all ranks; every rank gets the reduced one.
  Result<std::vector<double>> reduce(ReduceOp op, const std::vector<std::vector<double>>& values);
  Result<std::vector<std::uint64_t>> reduce(ReduceOp op, const std::vector<std::vector<std::uint64_t>>& values);
  // A line of each rank of the world, in rank order.
  Result<std::vector<std::string>> gather_lines(const std::vector<std::string>& lines);

  // Tells the peers that this rank gave up.
  void abort(const std::string& why);
  // Lets the peers leave: collective.
  Status close();

 private:
  explicit Ranks(std::vector<Member> members) : members_(std::move(members)) {}
  std::vector<Member> members_;
};

// Waits for all; the first error, after all are done. Leaves `works` empty.
Status wait_all(std::vector<Work>& works);

}  // namespace sluice::tools
