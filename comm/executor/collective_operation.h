// A collective: one run of a lowered program.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/executor/operation.h"
#include "comm/executor/program_run.h"

namespace sluice::detail {

class CollectiveOperation final : public Operation {
 public:
  using Operation::Operation;

  // Tables of a v-form that must live as long as the operation: filled before bind().
  std::vector<std::size_t> in_counts, in_offsets, out_counts, out_offsets;

  void bind(RunBinding binding);

  Advance advance(int steps) override { return run_.advance(steps); }
  Rank waiting_for() const override { return run_.waiting_for(); }
  std::uint64_t progress_mark() const override { return run_.progress_mark(); }
  std::uint64_t bytes_sent() const override { return run_.bytes_sent(); }
  std::string fault_text() const override;
  void give_back() override;

 private:
  ProgramRun run_;
  std::vector<std::byte> scratch_;  // keeps its capacity from use to use
};

}  // namespace sluice::detail
