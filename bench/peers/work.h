// What is measured: one operation on one number of bytes, the same for every library, and what must come out of it.
//
//   Bytes    the larger side of the operation at each rank, in float32: the whole message of all_reduce, broadcast and
//            send_receive, what reduce_scatter and all_to_all take in, what all_gather gives out.
//   Shapes   send_receive passes to the next rank and takes from the one before. all_to_all_v gives every second block
//            half as much again and the others half as much; broadcast goes from rank 0, in place.
//   Values   small whole numbers, so that sums are exact in any order, and different in each round, so that what an earlier
//            round left does not pass.
//   Source   plain C++, nothing of Sluice: it is compiled into the programs of all libraries.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace peers {

enum class Op { all_reduce, reduce_scatter, all_gather, broadcast, send_receive, all_to_all, all_to_all_v };

std::optional<Op> parse_op(std::string_view name);

struct Place {
  int rank = 0;
  int ranks = 1;
};

struct Work {
  Op op = Op::all_reduce;
  Place place;
  std::size_t count = 0;             // elements of the larger side
  std::size_t block = 0;             // elements per rank of the operations that have blocks
  std::vector<std::size_t> send;     // all_to_all_v: elements to each rank; the receive counts are the same
  std::vector<std::size_t> offsets;  // all_to_all_v: where each block begins, on both sides
  std::size_t next() const { return static_cast<std::size_t>((place.rank + 1) % place.ranks); }
  std::size_t before() const { return static_cast<std::size_t>((place.rank + place.ranks - 1) % place.ranks); }
  std::size_t in_count() const;
  std::size_t out_count() const;
};

// Empty where the operation has no such size: fewer than one element per rank, or blocks that do not divide.
std::optional<Work> make_work(Op op, std::size_t bytes, Place place);

// Writes this rank's input and wipes its output.
void fill(const Work& work, std::size_t round, float* in, float* out);

// What is wrong with the output of `round`, or nothing.
std::string fault(const Work& work, std::size_t round, const float* out);

}  // namespace peers
