// A plan: all of a collective call that depends neither on where its buffers lie nor on its number, so that the same call need not
// be checked, tuned, built and hashed again. A communicator keeps the last few.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/algorithms/algorithms.h"
#include "comm/executor/call.h"
#include "comm/executor/fingerprint.h"
#include "comm/executor/program_run.h"

namespace sluice::detail {

// A program and the flows that its peers mean on this communicator.
struct BoundProgram {
  Program program;
  std::vector<OutFlow*> out_flows;
  std::vector<InFlow*> in_flows;
  std::size_t describe_from = 0;  // see RunBinding
};

struct PlanKey {
  OperationKind kind = OperationKind::none;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  Rank root = -1;
  std::size_t count = 0;     // 0 in v-forms, whose layout is bound call by call
  std::uint64_t factor = 0;  // bits of premulsum's
  std::optional<Order> order;
  bool operator==(const PlanKey&) const = default;
};

struct Plan {
  PlanKey key;
  std::string wish;  // CallOptions::algorithm
  CallExtent extent;
  const Algorithm* algorithm = nullptr;
  Order order = Order::fast;
  std::array<BoundProgram*, 2> programs{};                // [in place], made when first needed
  std::array<std::shared_ptr<const BoundCode>, 2> codes;  // of them, but of v-forms, whose layout comes with the call
  CodeSettings settings;
  Fingerprint print;  // but for the number
  std::uint64_t print_hash = 0;
};

class PlanCache {
 public:
  // nullptr: there is none.
  Plan* find(const PlanKey& key, const std::string& wish) {
    const std::unique_ptr<Plan>& plan = plans_[place_of(key, wish)];
    return plan != nullptr && plan->key == key && plan->wish == wish ? plan.get() : nullptr;
  }
  Plan* put(std::unique_ptr<Plan> plan) {
    std::unique_ptr<Plan>& place = plans_[place_of(plan->key, plan->wish)];
    place = std::move(plan);
    return place.get();
  }

 private:
  static constexpr std::size_t kPlans = 32;
  static std::size_t place_of(const PlanKey& key, const std::string& wish) {
    const auto word = [](auto value) { return static_cast<std::uint64_t>(value); };
    const std::uint64_t what = word(key.kind) | (word(key.type) << 8) | (word(key.op) << 16) |
                               (word(key.order ? 1 + word(*key.order) : 0) << 24) | (word(wish.size()) << 28) |
                               (word(key.root) << 40);
    const std::uint64_t mixed = key.count ^ ((what ^ key.factor) * 0xd6e8feb86659fd93ULL);
    return (mixed * 0x9e3779b97f4a7c15ULL) >> 59;  // 2^5 places
  }
  std::array<std::unique_ptr<Plan>, kPlans> plans_;
};

}  // namespace sluice::detail
