#include "tools/perf/perf_test.h"

#include <algorithm>
#include <array>

#include "base/assert.h"

namespace sluice::tools {
namespace {

std::size_t as_size(int value) { return static_cast<std::size_t>(value); }

// Counts: the whole message, or one block of it.
std::size_t whole_count(std::size_t bytes, std::size_t element_bytes, int) { return bytes / element_bytes; }
std::size_t block_count(std::size_t bytes, std::size_t element_bytes, int ranks) {
  return bytes / element_bytes / as_size(ranks);
}

// Extents.
Extents same_extents(const PerfCase& one, Rank) { return {.send = one.count, .receive = one.count}; }
Extents gathered_extents(const PerfCase& one, Rank rank) {
  return {.send = one.count, .receive = one.count * as_size(one.ranks), .send_at = one.count * as_size(rank)};
}
Extents scattered_extents(const PerfCase& one, Rank rank) {
  return {.send = one.count * as_size(one.ranks), .receive = one.count, .receive_at = one.count * as_size(rank)};
}
Extents blocks_extents(const PerfCase& one, Rank) {
  return {.send = one.count * as_size(one.ranks), .receive = one.count * as_size(one.ranks)};
}
Extents traffic_extents(const PerfCase& one, Rank rank) {
  return {.send = one.traffic->total_sent(rank), .receive = one.traffic->total_received(rank)};
}

// Pieces.
std::vector<Piece> reduced_everywhere(const PerfCase& one, Rank) { return {{0, one.count, std::nullopt, 0}}; }
std::vector<Piece> reduced_at_root(const PerfCase& one, Rank rank) {
  if (rank != one.root) return {};
  return reduced_everywhere(one, rank);
}
std::vector<Piece> reduced_block(const PerfCase& one, Rank rank) {
  return {{0, one.count, std::nullopt, one.count * as_size(rank)}};
}
std::vector<Piece> gathered_everywhere(const PerfCase& one, Rank) {
  std::vector<Piece> pieces;
  for (Rank source = 0; source < one.ranks; ++source)
    pieces.push_back({one.count * as_size(source), one.count, source, 0});
  return pieces;
}
std::vector<Piece> gathered_at_root(const PerfCase& one, Rank rank) {
  if (rank != one.root) return {};
  return gathered_everywhere(one, rank);
}
std::vector<Piece> from_root(const PerfCase& one, Rank) { return {{0, one.count, one.root, 0}}; }
std::vector<Piece> block_from_root(const PerfCase& one, Rank rank) {
  return {{0, one.count, one.root, one.count * as_size(rank)}};
}
std::vector<Piece> block_from_each(const PerfCase& one, Rank rank) {
  std::vector<Piece> pieces;
  for (Rank source = 0; source < one.ranks; ++source)
    pieces.push_back({one.count * as_size(source), one.count, source, one.count * as_size(rank)});
  return pieces;
}
std::vector<Piece> traffic_from_each(const PerfCase& one, Rank rank) {
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (Rank source = 0; source < one.ranks; ++source) {
    std::size_t source_at = 0;
    for (Rank before = 0; before < rank; ++before) source_at += one.traffic->count(source, before);
    pieces.push_back({at, one.traffic->count(source, rank), source, source_at});
    at += one.traffic->count(source, rank);
  }
  return pieces;
}
std::vector<Piece> from_the_rank_before(const PerfCase& one, Rank rank) {
  return {{0, one.count, (rank + one.ranks - 1) % one.ranks, 0}};
}

// Calls.
InOut in_out(const PerfCase& one, const PerfCall& call) { return {call.send, call.receive, one.count, one.type}; }

void post_all_reduce(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->all_reduce(in_out(one, call), one.reduction, *call.options));
}
void post_all_gather(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->all_gather(in_out(one, call), *call.options));
}
void post_reduce_scatter(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->reduce_scatter(in_out(one, call), one.reduction, *call.options));
}
void post_broadcast(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->broadcast(in_out(one, call), one.root, *call.options));
}
void post_reduce(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->reduce(in_out(one, call), one.reduction, one.root, *call.options));
}
void post_gather(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->gather(in_out(one, call), one.root, *call.options));
}
void post_scatter(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  InOut buffers = in_out(one, call);
  if (call.communicator->rank() != one.root) buffers.in = nullptr;  // read at the root only
  works.push_back(call.communicator->scatter(buffers, one.root, *call.options));
}
void post_all_to_all(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  works.push_back(call.communicator->all_to_all(in_out(one, call), *call.options));
}
void post_all_to_all_v(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  const Rank rank = call.communicator->rank();
  works.push_back(
      call.communicator->all_to_all_v(in_out(one, call), {.counts = one.traffic->sent_by(rank), .offsets = {}},
                                      {.counts = one.traffic->received_by(rank), .offsets = {}}, *call.options));
}
void post_send_receive(const PerfCase& one, const PerfCall& call, std::vector<Work>& works) {
  Communicator& communicator = *call.communicator;
  const int ranks = communicator.ranks();
  const Rank next = (communicator.rank() + 1) % ranks;
  const Rank before = (communicator.rank() + ranks - 1) % ranks;
  works.push_back(communicator.send(call.send, one.count, one.type, next, *call.options));
  works.push_back(communicator.receive(call.receive, one.count, one.type, before, *call.options));
}

// Bandwidth: nccl-tests' factors.
std::size_t whole_bytes(const PerfCase& one) { return one.count * element_bytes(one.type); }
std::size_t all_blocks_bytes(const PerfCase& one) { return one.count * as_size(one.ranks) * element_bytes(one.type); }
std::size_t largest_traffic_bytes(const PerfCase& one) {
  return one.traffic->largest_total() * element_bytes(one.type);
}
double all_reduce_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }
double blocks_factor(int ranks) { return 1.0 * (ranks - 1) / ranks; }
double one_factor(int) { return 1; }

constexpr std::array<PerfTest, 10> kTests{{
    {"all_reduce", "AllReduce", Collective::all_reduce, true, false, true, false, whole_count, same_extents,
     reduced_everywhere, post_all_reduce, whole_bytes, all_reduce_factor},
    {"all_gather", "AllGather", Collective::all_gather, false, false, true, false, block_count, gathered_extents,
     gathered_everywhere, post_all_gather, all_blocks_bytes, blocks_factor},
    {"reduce_scatter", "ReduceScatter", Collective::reduce_scatter, true, false, true, false, block_count,
     scattered_extents, reduced_block, post_reduce_scatter, all_blocks_bytes, blocks_factor},
    {"broadcast", "Broadcast", Collective::broadcast, false, true, true, false, whole_count, same_extents, from_root,
     post_broadcast, whole_bytes, one_factor},
    {"reduce", "Reduce", Collective::reduce, true, true, true, false, whole_count, same_extents, reduced_at_root,
     post_reduce, whole_bytes, one_factor},
    {"alltoall", "AlltoAll", Collective::all_to_all, false, false, true, false, block_count, blocks_extents,
     block_from_each, post_all_to_all, all_blocks_bytes, blocks_factor},
    {"alltoallv", "AlltoAllv", Collective::all_to_all, false, false, false, true, block_count, traffic_extents,
     traffic_from_each, post_all_to_all_v, largest_traffic_bytes, blocks_factor},
    {"gather", "Gather", Collective::gather, false, true, true, false, block_count, gathered_extents, gathered_at_root,
     post_gather, all_blocks_bytes, blocks_factor},
    {"scatter", "Scatter", Collective::scatter, false, true, true, false, block_count, scattered_extents,
     block_from_root, post_scatter, all_blocks_bytes, blocks_factor},
    {"sendrecv", "SendRecv", std::nullopt, false, false, false, false, whole_count, same_extents, from_the_rank_before,
     post_send_receive, whole_bytes, one_factor},
}};

}  // namespace

std::span<const PerfTest> all_perf_tests() { return kTests; }

const PerfTest& perf_test(std::string_view name) {
  const auto found = std::find_if(kTests.begin(), kTests.end(), [&](const PerfTest& one) { return one.name == name; });
  SLUICE_ASSERT(found != kTests.end(), "the benchmark program names a test that is not in the list");
  return *found;
}

}  // namespace sluice::tools
