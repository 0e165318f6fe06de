#include "comm/algorithms/ring.h"

#include <numeric>
#include <vector>

#include "comm/algorithms/request.h"

namespace sluice {
namespace {

// The ranks by place, wrapped.
class Ring {
 public:
  explicit Ring(std::span<const Rank> order) : order_(order) {}
  int ranks() const { return static_cast<int>(order_.size()); }
  int at(int i) const { return ((i % ranks()) + ranks()) % ranks(); }
  Rank rank(int i) const { return order_[static_cast<std::size_t>(at(i))]; }

 private:
  std::span<const Rank> order_;
};

Status check_order(std::span<const Rank> order) {
  std::vector<bool> seen(order.size());
  const auto once = [&](Rank rank) {
    const bool fresh =
        rank >= 0 && static_cast<std::size_t>(rank) < seen.size() && !seen[static_cast<std::size_t>(rank)];
    if (fresh) seen[static_cast<std::size_t>(rank)] = true;
    return fresh;
  };
  if (order.empty() || order.size() > static_cast<std::size_t>(kRanksMax))
    return {Code::invalid_argument,
            "a ring has 1.." + std::to_string(kRanksMax) + " ranks, not " + std::to_string(order.size())};
  for (const Rank rank : order)
    if (!once(rank))
      return {Code::invalid_argument, "ring order must hold each rank once; rank " + std::to_string(rank) +
                                          " is not one of them or is there twice"};
  return {};
}

std::vector<Rank> in_order(int ranks) {
  std::vector<Rank> order(static_cast<std::size_t>(ranks));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

Result<Schedule> ring_all_reduce(std::span<const Rank> order, std::optional<Rank> only) {
  SLUICE_TRY(check_order(order));
  const Ring ring(order);
  const int ranks = ring.ranks();
  ScheduleBuilder builder("ring_all_reduce", {Collective::all_reduce, ranks, /*chunks=*/ranks, 0, 0}, only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));

  // Reduce-scatter: at step t place i passes chunk i-t on. After P-1 steps place i holds all of chunk i+1.
  for (int t = 0; t < ranks - 1; ++t)
    for (int i = 0; i < ranks; ++i) {
      const int chunk = ring.at(i - t);
      const Place from = t == 0 ? input(ring.rank(i), chunk) : output(ring.rank(i), chunk);
      builder.reduce(from, input(ring.rank(i + 1), chunk), output(ring.rank(i + 1), chunk));
    }

  // All-gather: the finished chunks go once round, so place i starts with chunk i+1.
  for (int t = 0; t < ranks - 1; ++t)
    for (int i = 0; i < ranks; ++i) {
      const int chunk = ring.at(i + 1 - t);
      builder.copy(output(ring.rank(i), chunk), output(ring.rank(i + 1), chunk));
    }

  return std::move(builder).build();
}

Result<Schedule> ring_reduce_scatter(std::span<const Rank> order, std::optional<Rank> only) {
  SLUICE_TRY(check_order(order));
  const Ring ring(order);
  const int ranks = ring.ranks();
  ScheduleBuilder builder("ring_reduce_scatter",
                          {Collective::reduce_scatter, ranks, 1, 0, /*scratch=*/ranks > 2 ? 2 : 0}, only);
  if (ranks == 1) builder.copy(input(0, 0), output(0, 0));

  // At step t place i passes the sum for the rank at place i-t-1 on; the last step ends at that rank. Partial sums stay out of
  // the output: in place it is an input that is needed until then.
  for (int t = 0; t < ranks - 1; ++t)
    for (int i = 0; i < ranks; ++i) {
      const Rank block = ring.rank(i - t - 1);
      const Rank here = ring.rank(i);
      const Rank next = ring.rank(i + 1);
      const Place from = t == 0 ? input(here, block) : scratch(here, (t - 1) % 2);
      builder.reduce(from, input(next, block), t == ranks - 2 ? output(next, 0) : scratch(next, t % 2));
    }
  return std::move(builder).build();
}

Result<Schedule> ring_all_gather(std::span<const Rank> order, std::optional<Rank> only) {
  SLUICE_TRY(check_order(order));
  const Ring ring(order);
  const int ranks = ring.ranks();
  ScheduleBuilder builder("ring_all_gather", {Collective::all_gather, ranks, 1, 0, 0}, only);
  for (int i = 0; i < ranks; ++i) builder.copy(input(ring.rank(i), 0), output(ring.rank(i), ring.rank(i)));
  for (int t = 0; t < ranks - 1; ++t)
    for (int i = 0; i < ranks; ++i) {
      const Rank block = ring.rank(i - t);
      const Place from = t == 0 ? input(block, 0) : output(ring.rank(i), block);
      builder.copy(from, output(ring.rank(i + 1), block));
    }
  return std::move(builder).build();
}

Result<Schedule> ring_all_reduce(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_reduce, one_rank(request.ranks)));
  return ring_all_reduce(in_order(request.ranks), request.only);
}

Result<Schedule> ring_reduce_scatter(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::reduce_scatter, one_rank(request.ranks)));
  return ring_reduce_scatter(in_order(request.ranks), request.only);
}

Result<Schedule> ring_all_gather(const AlgorithmRequest& request) {
  SLUICE_TRY(check_request(request, Collective::all_gather, true));
  return ring_all_gather(in_order(request.ranks), request.only);
}

AlgorithmCost ring_all_reduce_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {2.0 * (ranks - 1), 2.0 * (ranks - 1) * bytes / ranks, 2.0 * (ranks - 1) * bytes / ranks};
}

AlgorithmCost ring_reduce_scatter_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {ranks - 1.0, (ranks - 1) * bytes / ranks, 2.0 * (ranks - 1) * bytes / ranks};
}

AlgorithmCost ring_all_gather_cost(int ranks, double bytes) {
  if (ranks == 1) return {1, 0, 0};
  return {ranks - 1.0, (ranks - 1) * bytes / ranks, 0};
}

}  // namespace sluice
