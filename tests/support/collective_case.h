// One collective as data: its buffers on every rank, how to post it, and what must come out, computed from the reference.
// The same case runs on any transport, from one thread (post on all ranks, then wait on all) or from one thread a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/executor/fingerprint.h"
#include "tests/support/reference.h"

namespace sluice::test {

struct CollectiveCase {
  OperationKind kind =
      OperationKind::all_reduce;  // of the sixteen that Communicator offers, without split, close, point_to_point
  int ranks = 2;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  std::size_t count = 1;  // as in the call; v-forms: the largest block
  Rank root = 0;
  bool in_place = false;
  std::size_t misaligned = 0;  // bytes that buffers are off a 64-byte border
  Order order = Order::fast;
  std::string algorithm{};
  std::optional<Lane> lane{};  // that the call names
  bool order_sensitive = false;
  std::uint64_t seed = 1;
};
std::string describe(const CollectiveCase& one);

class CaseRun {
 public:
  explicit CaseRun(const CollectiveCase& one);

  // Posts this rank's part. The run must outlive the Work.
  Work post(Communicator& communicator);
  // After all are done: what is wrong, or an empty string. Inputs must be untouched where they are not in place.
  std::string check() const;
  // The result bytes of a rank, for comparisons between runs.
  Bytes output(Rank rank) const;

 private:
  struct RankBuffers {
    Bytes in_memory, out_memory;
    std::byte* in = nullptr;
    std::byte* out = nullptr;
    std::size_t in_bytes = 0, out_bytes = 0;
    std::vector<std::size_t> in_counts, out_counts;
    Bytes want;
  };
  void lay_out();
  void fill();
  void expect();
  std::size_t block(Rank from, Rank to) const;  // elements of a v-form's block
  std::size_t in_elements(Rank rank) const;
  std::size_t out_elements(Rank rank) const;
  std::byte* place(Bytes& memory, std::size_t bytes);

  CollectiveCase case_;
  Reduction reduction_;
  std::vector<RankBuffers> ranks_;
  std::vector<Bytes> inputs_;
};

}  // namespace sluice::test
