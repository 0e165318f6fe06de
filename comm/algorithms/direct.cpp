#include "comm/algorithms/direct.h"

#include <vector>

#include "comm/algorithms/request.h"

namespace sluice {
namespace {

// A chunk of every rank's input, in the order of ranks.
std::vector<Place> inputs(int ranks, int chunk) {
  std::vector<Place> places;
  for (Rank rank = 0; rank < ranks; ++rank) places.push_back(input(rank, chunk));
  return places;
}

void sum(ScheduleBuilder& builder, const std::vector<Place>& from, Place to) {
  builder.combine(from, {&to, 1}, Tree::canonical);
}

// The same chunk of every rank's output, `first`'s first: it is the one who writes.
std::vector<Place> outputs(int ranks, int chunk, Rank first) {
  std::vector<Place> places;
  for (int distance = 0; distance < ranks; ++distance) places.push_back(output((first + distance) % ranks, chunk));
  return places;
}

// Bytes read by a sum of all ranks' values.
double read_by_sum(int ranks, double bytes) { return ranks == 1 ? 0 : ranks * bytes; }

}  // namespace

Result<Schedule> one_shot_all_reduce(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_reduce, true));
  ScheduleBuilder builder("one_shot_all_reduce", {Collective::all_reduce, request.ranks, 1, 0, 0}, request.only);
  const std::vector<Place> all = inputs(request.ranks, 0);
  builder.together([&] {
    for (Rank rank = 0; rank < request.ranks; ++rank) sum(builder, all, output(rank, 0));
  });
  return std::move(builder).build();
}

AlgorithmCost one_shot_all_reduce_cost(int ranks, double bytes) {
  return {1, (ranks - 1) * bytes, read_by_sum(ranks, bytes)};
}

Result<Schedule> two_shot_all_reduce(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_reduce, true));
  const int ranks = request.ranks;
  ScheduleBuilder builder("two_shot_all_reduce", {Collective::all_reduce, ranks, /*chunks=*/ranks, 0, 0}, request.only);
  for (Rank rank = 0; rank < ranks; ++rank)
    builder.combine(inputs(ranks, rank), outputs(ranks, rank, rank), Tree::canonical);
  return std::move(builder).build();
}

AlgorithmCost two_shot_all_reduce_cost(int ranks, double bytes) {
  return {ranks == 1 ? 1.0 : 2.0, 2.0 * (ranks - 1) * bytes / ranks, read_by_sum(ranks, bytes / ranks)};
}

Result<Schedule> direct_reduce_scatter(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::reduce_scatter, true));
  ScheduleBuilder builder("direct_reduce_scatter", {Collective::reduce_scatter, request.ranks, 1, 0, 0}, request.only);
  for (Rank rank = 0; rank < request.ranks; ++rank) sum(builder, inputs(request.ranks, rank), output(rank, 0));
  return std::move(builder).build();
}

AlgorithmCost direct_reduce_scatter_cost(int ranks, double bytes) {
  return {1, (ranks - 1) * bytes / ranks, read_by_sum(ranks, bytes / ranks)};
}

Result<Schedule> direct_all_gather(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_gather, true));
  const int ranks = request.ranks;
  ScheduleBuilder builder("direct_all_gather", {Collective::all_gather, ranks, 1, 0, 0}, request.only);
  for (int distance = 0; distance < ranks; ++distance)
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Rank from = (rank + distance) % ranks;
      builder.copy(input(from, 0), output(rank, from));
    }
  return std::move(builder).build();
}

AlgorithmCost direct_all_gather_cost(int ranks, double bytes) { return {1, (ranks - 1) * bytes / ranks, 0}; }

Result<Schedule> direct_broadcast(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::broadcast, true));
  ScheduleBuilder builder("direct_broadcast", {Collective::broadcast, request.ranks, 1, request.root, 0}, request.only);
  for (Rank rank = 0; rank < request.ranks; ++rank) builder.copy(input(request.root, 0), output(rank, 0));
  return std::move(builder).build();
}

AlgorithmCost direct_broadcast_cost(int ranks, double bytes) { return {1, (ranks - 1) * bytes, 0}; }

Result<Schedule> direct_reduce(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::reduce, true));
  ScheduleBuilder builder("direct_reduce", {Collective::reduce, request.ranks, 1, request.root, 0}, request.only);
  sum(builder, inputs(request.ranks, 0), output(request.root, 0));
  return std::move(builder).build();
}

AlgorithmCost direct_reduce_cost(int ranks, double bytes) {
  return {1, ranks == 1 ? 0 : bytes, read_by_sum(ranks, bytes)};
}

Result<Schedule> direct_gather(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::gather, true));
  ScheduleBuilder builder("direct_gather", {Collective::gather, request.ranks, 1, request.root, 0}, request.only);
  for (Rank rank = 0; rank < request.ranks; ++rank) builder.copy(input(rank, 0), output(request.root, rank));
  return std::move(builder).build();
}

AlgorithmCost direct_gather_cost(int ranks, double bytes) { return {1, ranks == 1 ? 0 : bytes / ranks, 0}; }

Result<Schedule> direct_scatter(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::scatter, true));
  ScheduleBuilder builder("direct_scatter", {Collective::scatter, request.ranks, 1, request.root, 0}, request.only);
  for (Rank rank = 0; rank < request.ranks; ++rank) builder.copy(input(request.root, rank), output(rank, 0));
  return std::move(builder).build();
}

AlgorithmCost direct_scatter_cost(int ranks, double bytes) { return {1, (ranks - 1) * bytes / ranks, 0}; }

Result<Schedule> pairwise_all_to_all(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_to_all, true));
  const int ranks = request.ranks;
  ScheduleBuilder builder("pairwise_all_to_all", {Collective::all_to_all, ranks, 1, 0, 0}, request.only);
  builder.together([&] {
    for (int distance = 0; distance < ranks; ++distance)
      for (Rank rank = 0; rank < ranks; ++rank) {
        const Rank from = (rank - distance + ranks) % ranks;
        builder.copy(input(from, rank), output(rank, from));
      }
  });
  return std::move(builder).build();
}

AlgorithmCost pairwise_all_to_all_cost(int ranks, double bytes) { return {1, (ranks - 1) * bytes / ranks, 0}; }

}  // namespace sluice
