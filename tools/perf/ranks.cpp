#include "tools/perf/ranks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/config.h"

namespace sluice::tools {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLineBytes = 256;

template <typename Number>
Result<std::vector<Number>> reduce_numbers(std::vector<Member>& members, ReduceOp op,
                                           const std::vector<std::vector<Number>>& values) {
  const DataType type = std::is_same_v<Number, double> ? DataType::float64 : DataType::uint64;
  std::vector<std::vector<Number>> results(members.size());
  std::vector<Work> works;
  for (std::size_t i = 0; i < members.size(); ++i) {
    results[i].resize(values[i].size());
    works.push_back(members[i].world.all_reduce({values[i].data(), results[i].data(), values[i].size(), type}, op));
  }
  SLUICE_TRY(wait_all(works));
  return results.front();
}

}  // namespace

void RankMemory::Free::operator()(void* memory) const { std::free(memory); }

Result<RankMemory> RankMemory::allocate(Communicator& communicator, std::size_t bytes, bool window) {
  RankMemory memory;
  if (window) {
    SLUICE_TRY_ASSIGN(memory.window_, communicator.allocate(bytes));
    memory.data_ = static_cast<std::byte*>(memory.window_.data());
    return memory;
  }
  memory.plain_.reset(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
  memory.data_ = static_cast<std::byte*>(memory.plain_.get());
  if (memory.data_ == nullptr)
    return Error{Code::out_of_resource, "rank " + std::to_string(communicator.rank()) + ": no memory for a buffer of " +
                                            format_bytes(bytes) + "; lower -e"};
  return memory;
}

Result<Ranks> Ranks::create(std::vector<std::unique_ptr<Runtime>> runtimes, const std::optional<SplitRule>& split,
                            const std::optional<Lane>& lane) {
  if ((split || lane) && runtimes.size() > 1)
    return Error{Code::unsupported,
                 "NCCL_TESTS_SPLIT and --lane: the loop transport runs all ranks in one thread, which can't split"};
  std::vector<Member> members;
  for (auto& runtime : runtimes) {
    Member member;
    member.world = runtime->world();
    member.group = runtime->world();
    member.runtime = std::move(runtime);
    if (split || lane) {
      const Rank rank = member.world.rank();
      member.color = split ? split->color(rank) : 0;
      SLUICE_TRY_ASSIGN(member.group, member.world.split(member.color, rank,
                                                         {.lane = lane.value_or(Lane{}), .name = {}, .deadline = {}}));
    }
    members.push_back(std::move(member));
  }
  return Ranks(std::move(members));
}

Status Ranks::barrier() {
  std::vector<Work> works;
  for (Member& member : members_) works.push_back(member.world.barrier());
  return wait_all(works);
}

Result<std::vector<double>> Ranks::reduce(ReduceOp op, const std::vector<std::vector<double>>& values) {
  return reduce_numbers(members_, op, values);
}

Result<std::vector<std::uint64_t>> Ranks::reduce(ReduceOp op, const std::vector<std::vector<std::uint64_t>>& values) {
  return reduce_numbers(members_, op, values);
}

Result<std::vector<std::string>> Ranks::gather_lines(const std::vector<std::string>& lines) {
  const auto ranks = static_cast<std::size_t>(world_ranks());
  std::vector<std::vector<char>> in(members_.size(), std::vector<char>(kLineBytes));
  std::vector<std::vector<char>> out(members_.size(), std::vector<char>(kLineBytes * ranks));
  std::vector<Work> works;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    std::copy_n(lines[i].begin(), std::min(lines[i].size(), kLineBytes - 1), in[i].begin());
    works.push_back(members_[i].world.all_gather({in[i].data(), out[i].data(), kLineBytes, DataType::uint8}));
  }
  SLUICE_TRY(wait_all(works));
  std::vector<std::string> all;
  for (std::size_t rank = 0; rank < ranks; ++rank) all.emplace_back(out.front().data() + rank * kLineBytes);
  return all;
}

void Ranks::abort(const std::string& why) {
  for (Member& member : members_) member.world.abort(why);
}

Status Ranks::close() {
  if (members_.size() > 1) return {};  // a loop world has nobody to leave behind
  if (first().group.state() != first().world.state()) SLUICE_TRY(first().group.close());
  return first().world.close();
}

Status wait_all(std::vector<Work>& works) {
  Status first;
  for (Work& work : works)
    if (Status status = work.wait(); !status.ok() && first.ok()) first = std::move(status);
  works.clear();
  return first;
}

}  // namespace sluice::tools
