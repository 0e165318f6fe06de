// A collective: one run of a lowered program.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "comm/executor/call.h"
#include "comm/executor/operation.h"
#include "comm/executor/program_run.h"

namespace sluice::detail {

class CollectiveOperation final : public Operation {
 public:
  using Operation::Operation;

  // The code of a v-form. A call with the tables of the last one has that one's.
  // The table of a side that this rank doesn't have was not checked, and is not used.
  const std::shared_ptr<BoundCode>& uneven_code(const Program& program, const CodeSettings& settings, const Call& call,
                                                const CallExtent& extent);
  void bind(const std::shared_ptr<const BoundCode>& code, RunBinding& binding);  // sets its code and scratch

  Advance advance(int steps) override { return run_.advance(steps); }
  bool ripe() override { return run_.ripe(); }
  Rank waiting_for() const override { return run_.waiting_for(); }
  std::uint64_t progress_mark() const override { return run_.progress_mark(); }
  std::uint64_t bytes_sent() const override { return run_.bytes_sent(); }
  std::uint64_t bytes_moved() const override { return run_.bytes_moved(); }
  std::size_t slice() const override { return run_.slice(); }
  WaitReason waits_on() const override { return run_.waits_on(); }
  std::string fault_text() const override;
  void give_back() override { give_to_pool(this); }

 private:
  struct KeptBlocks {
    bool keep(const Blocks& blocks);
    std::vector<std::size_t> given_counts;
    std::vector<std::size_t> given_offsets;
    std::vector<std::size_t> offsets;  // one after another if none were given
  };

  std::shared_ptr<const BoundCode> code_;   // mostly the one of the use before: then no count goes up or down
  std::shared_ptr<BoundCode> uneven_code_;  // used by this operation alone
  ProgramRun run_;
  KeptBlocks in_blocks_;  // of uneven_code_
  KeptBlocks out_blocks_;
  std::size_t single_ = 0;
  std::vector<std::byte> scratch_;  // keeps its capacity from use to use
};

}  // namespace sluice::detail
