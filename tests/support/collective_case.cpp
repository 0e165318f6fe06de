#include "tests/support/collective_case.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/rng.h"

namespace sluice::test {
namespace {

constexpr std::size_t kBorder = 64;
constexpr std::byte kUntouched{0xa5};

bool reduces(OperationKind kind) {
  return kind == OperationKind::all_reduce || kind == OperationKind::reduce || kind == OperationKind::reduce_scatter ||
         kind == OperationKind::reduce_scatter_v;
}

// One block of every rank's, in the buffer named.
bool in_has_blocks(OperationKind kind) {
  return kind == OperationKind::reduce_scatter || kind == OperationKind::reduce_scatter_v ||
         kind == OperationKind::scatter || kind == OperationKind::scatter_v || kind == OperationKind::all_to_all ||
         kind == OperationKind::all_to_all_v;
}
bool out_has_blocks(OperationKind kind) {
  return kind == OperationKind::all_gather || kind == OperationKind::all_gather_v || kind == OperationKind::gather ||
         kind == OperationKind::gather_v || kind == OperationKind::all_to_all || kind == OperationKind::all_to_all_v;
}
bool uneven(OperationKind kind) {
  return kind == OperationKind::all_gather_v || kind == OperationKind::reduce_scatter_v ||
         kind == OperationKind::gather_v || kind == OperationKind::scatter_v || kind == OperationKind::all_to_all_v;
}

std::size_t sum(const std::vector<std::size_t>& counts, std::size_t first) {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(first), std::size_t{0});
}

}  // namespace

std::string describe(const CollectiveCase& one) {
  return std::string(name(one.kind)) + " ranks " + std::to_string(one.ranks) + " " + std::string(name(one.type)) + " " +
         std::string(name(one.op)) + " count " + std::to_string(one.count) + " root " + std::to_string(one.root) +
         (one.in_place ? " in place" : " out of place") + " misaligned " + std::to_string(one.misaligned) + " " +
         std::string(name(one.order)) + " algorithm '" + one.algorithm + "' seed " + std::to_string(one.seed);
}

CaseRun::CaseRun(const CollectiveCase& one)
    : case_(one), reduction_(one.op), ranks_(static_cast<std::size_t>(one.ranks)) {
  if (one.op == ReduceOp::premulsum) reduction_ = Reduction::premul_sum(2);
  lay_out();
  fill();
  expect();
}

// All-gather and reduce-scatter blocks are known to all, so they depend on one of the two ranks only.
std::size_t CaseRun::block(Rank from, Rank to) const {
  if (!uneven(case_.kind)) return case_.count;
  std::uint64_t key = static_cast<std::uint64_t>(from) * 64 + static_cast<std::uint64_t>(to);
  if (case_.kind == OperationKind::all_gather_v || case_.kind == OperationKind::gather_v)
    key = static_cast<std::uint64_t>(from);
  if (case_.kind == OperationKind::reduce_scatter_v || case_.kind == OperationKind::scatter_v)
    key = static_cast<std::uint64_t>(to);
  return static_cast<std::size_t>(mix64(case_.seed * 1000 + key) % (case_.count + 1));
}

std::size_t CaseRun::in_elements(Rank rank) const {
  const RankBuffers& mine = ranks_[static_cast<std::size_t>(rank)];
  if ((case_.kind == OperationKind::broadcast || case_.kind == OperationKind::scatter ||
       case_.kind == OperationKind::scatter_v) &&
      rank != case_.root)
    return 0;
  return in_has_blocks(case_.kind) ? sum(mine.in_counts, mine.in_counts.size()) : mine.in_counts[0];
}

std::size_t CaseRun::out_elements(Rank rank) const {
  const RankBuffers& mine = ranks_[static_cast<std::size_t>(rank)];
  if ((case_.kind == OperationKind::reduce || case_.kind == OperationKind::gather ||
       case_.kind == OperationKind::gather_v) &&
      rank != case_.root)
    return 0;
  return out_has_blocks(case_.kind) ? sum(mine.out_counts, mine.out_counts.size()) : mine.out_counts[0];
}

std::byte* CaseRun::place(Bytes& memory, std::size_t bytes) {
  memory.assign(bytes + 2 * kBorder, kUntouched);
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + (kBorder - at % kBorder) % kBorder + case_.misaligned % kBorder;
}

void CaseRun::lay_out() {
  const std::size_t bytes = element_bytes(case_.type);
  for (Rank rank = 0; rank < case_.ranks; ++rank) {
    RankBuffers& mine = ranks_[static_cast<std::size_t>(rank)];
    const bool whole = !in_has_blocks(case_.kind) && !out_has_blocks(case_.kind);
    for (Rank other = 0; other < case_.ranks; ++other) {
      mine.in_counts.push_back(in_has_blocks(case_.kind) ? block(rank, other)
                               : whole                   ? case_.count
                                                         : block(rank, rank));
      mine.out_counts.push_back(out_has_blocks(case_.kind) ? block(other, rank)
                                : whole                    ? case_.count
                                                           : block(rank, rank));
    }
    if (case_.kind == OperationKind::scatter_v) mine.out_counts[0] = block(case_.root, rank);
    mine.in_bytes = in_elements(rank) * bytes;
    mine.out_bytes = out_elements(rank) * bytes;
    const auto own = static_cast<std::size_t>(rank);
    const bool both = mine.in_bytes > 0 && mine.out_bytes > 0;
    mine.in = place(mine.in_memory, std::max(mine.in_bytes, case_.in_place ? mine.out_bytes : 0));
    mine.out = place(mine.out_memory, mine.out_bytes);
    if (!case_.in_place || !both) continue;
    mine.out = mine.in;
    if (in_has_blocks(case_.kind) && !out_has_blocks(case_.kind)) mine.out = mine.in + sum(mine.in_counts, own) * bytes;
    if (out_has_blocks(case_.kind) && !in_has_blocks(case_.kind))
      mine.in = mine.out + sum(mine.out_counts, own) * bytes;
  }
}

void CaseRun::fill() {
  std::size_t most = 0;
  for (Rank rank = 0; rank < case_.ranks; ++rank) most = std::max(most, in_elements(rank));
  inputs_ = case_.order_sensitive ? order_sensitive_inputs(case_.type, case_.ranks, most, case_.seed)
                                  : whole_inputs(case_.type, case_.op, case_.ranks, most, case_.seed);
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    inputs_[rank].resize(ranks_[rank].in_bytes);
    if (ranks_[rank].in_bytes > 0) std::memcpy(ranks_[rank].in, inputs_[rank].data(), ranks_[rank].in_bytes);
  }
}

void CaseRun::expect() {
  if (case_.kind == OperationKind::barrier) return;
  const std::size_t bytes = element_bytes(case_.type);
  Bytes reduced;
  if (reduces(case_.kind)) reduced = reduce(inputs_, case_.type, reduction_, Tree::canonical);
  const auto part = [&](const Bytes& from, std::size_t begin, std::size_t count) {
    return Bytes(from.begin() + static_cast<std::ptrdiff_t>(begin * bytes),
                 from.begin() + static_cast<std::ptrdiff_t>((begin + count) * bytes));
  };
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    RankBuffers& mine = ranks_[rank];
    if (mine.out_bytes == 0) continue;
    if (case_.kind == OperationKind::all_reduce || case_.kind == OperationKind::reduce) {
      mine.want = reduced;
    } else if (reduces(case_.kind)) {
      mine.want = part(reduced, sum(mine.in_counts, rank), mine.out_counts[0]);
    } else if (case_.kind == OperationKind::broadcast) {
      mine.want = inputs_[static_cast<std::size_t>(case_.root)];
    } else if (!out_has_blocks(case_.kind)) {  // scatter
      const auto root = static_cast<std::size_t>(case_.root);
      mine.want = part(inputs_[root], sum(ranks_[root].in_counts, rank), mine.out_counts[0]);
    } else {
      for (std::size_t from = 0; from < ranks_.size(); ++from) {
        const std::size_t begin = in_has_blocks(case_.kind) ? sum(ranks_[from].in_counts, rank) : 0;
        const Bytes block_bytes = part(inputs_[from], begin, mine.out_counts[from]);
        mine.want.insert(mine.want.end(), block_bytes.begin(), block_bytes.end());
      }
    }
  }
}

Work CaseRun::post(Communicator& communicator) {
  const Rank rank = communicator.rank();
  RankBuffers& mine = ranks_[static_cast<std::size_t>(rank)];
  const InOut buffers{mine.in_bytes > 0 ? mine.in : nullptr, mine.out_bytes > 0 ? mine.out : nullptr, case_.count,
                      case_.type};
  InOut own = buffers;  // for the v-forms in which every rank gives its own count
  CallOptions options;
  if (reduces(case_.kind)) options.order = case_.order;
  options.algorithm = case_.algorithm;
  options.lane = case_.lane;
  switch (case_.kind) {
    case OperationKind::all_reduce: return communicator.all_reduce(buffers, reduction_, options);
    case OperationKind::reduce_scatter: return communicator.reduce_scatter(buffers, reduction_, options);
    case OperationKind::all_gather: return communicator.all_gather(buffers, options);
    case OperationKind::broadcast: return communicator.broadcast(buffers, case_.root, options);
    case OperationKind::reduce: return communicator.reduce(buffers, reduction_, case_.root, options);
    case OperationKind::gather: return communicator.gather(buffers, case_.root, options);
    case OperationKind::scatter: return communicator.scatter(buffers, case_.root, options);
    case OperationKind::all_to_all: return communicator.all_to_all(buffers, options);
    case OperationKind::all_gather_v: return communicator.all_gather_v(buffers, {mine.out_counts, {}}, options);
    case OperationKind::reduce_scatter_v:
      return communicator.reduce_scatter_v(buffers, {mine.in_counts, {}}, reduction_, options);
    case OperationKind::gather_v:
      own.count = mine.in_counts[0];
      return communicator.gather_v(own, {mine.out_counts, {}}, case_.root, options);
    case OperationKind::scatter_v:
      own.count = mine.out_counts[0];
      return communicator.scatter_v(own, {mine.in_counts, {}}, case_.root, options);
    case OperationKind::all_to_all_v:
      return communicator.all_to_all_v(buffers, {mine.in_counts, {}}, {mine.out_counts, {}}, options);
    case OperationKind::barrier: return communicator.barrier(options);
    default: return Work(Status(Code::invalid_argument, "no collective"));
  }
}

Bytes CaseRun::output(Rank rank) const {
  const RankBuffers& mine = ranks_[static_cast<std::size_t>(rank)];
  return Bytes(mine.out, mine.out + mine.out_bytes);
}

std::string CaseRun::check() const {
  if (case_.kind == OperationKind::barrier) return {};
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    const RankBuffers& mine = ranks_[rank];
    const Bytes got = output(static_cast<Rank>(rank));
    if (got.size() != mine.want.size())
      return "rank " + std::to_string(rank) + ": the case itself is wrong about sizes";
    if (const auto at = first_difference(case_.type, got, mine.want, case_.order == Order::canonical); at >= 0)
      return describe(case_) + ": rank " + std::to_string(rank) + " differs at element " + std::to_string(at);
    const bool in_place = case_.in_place && mine.in_bytes > 0 && mine.out_bytes > 0;
    if (!in_place && mine.in_bytes > 0 && std::memcmp(mine.in, inputs_[rank].data(), mine.in_bytes) != 0)
      return describe(case_) + ": rank " + std::to_string(rank) + "'s input was overwritten";
    const std::byte* behind = mine.out + mine.out_bytes;
    if (!in_place && mine.out_bytes > 0 && *behind != kUntouched)
      return describe(case_) + ": rank " + std::to_string(rank) + " wrote behind its output";
  }
  return {};
}

}  // namespace sluice::test
