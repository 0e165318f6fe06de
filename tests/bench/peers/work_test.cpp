// What the check accepts is computed a second time by moving blocks about; then one element is spoilt at a time.
#include "bench/peers/work.h"

#include <gtest/gtest.h>

namespace peers {
namespace {

using Buffers = std::vector<std::vector<float>>;

struct World {
  std::vector<Work> works;
  Buffers in, out;

  World(Op op, std::size_t bytes, int ranks, std::size_t round) {
    for (int rank = 0; rank < ranks; ++rank) {
      works.push_back(*make_work(op, bytes, {rank, ranks}));
      in.emplace_back(works.back().in_count());
      out.emplace_back(works.back().out_count());
      fill(works.back(), round, in.back().data(), out.back().data());
    }
  }
};

std::vector<float> sum_of(const Buffers& all) {
  std::vector<float> sum(all[0].size());
  for (const auto& one : all)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  return sum;
}

std::vector<float> part(const std::vector<float>& whole, std::size_t begin, std::size_t count) {
  const auto from = whole.begin() + static_cast<std::ptrdiff_t>(begin);
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

void append(std::vector<float>& to, const std::vector<float>& more) { to.insert(to.end(), more.begin(), more.end()); }

// What rank `r` must get.
std::vector<float> result(const World& world, std::size_t r) {
  const Work& work = world.works[r];
  const std::size_t ranks = world.works.size(), block = work.block;
  std::vector<float> got;
  switch (work.op) {
    case Op::all_reduce: return sum_of(world.in);
    case Op::reduce_scatter: return part(sum_of(world.in), r * block, block);
    case Op::broadcast: return world.out[0];
    case Op::send_receive: return world.in[r == 0 ? ranks - 1 : r - 1];
    default: break;
  }
  for (std::size_t from = 0; from < ranks; ++from) {
    const Work& sender = world.works[from];
    if (work.op == Op::all_gather) append(got, world.in[from]);
    if (work.op == Op::all_to_all) append(got, part(world.in[from], r * block, block));
    if (work.op == Op::all_to_all_v) append(got, part(world.in[from], sender.offsets[r], sender.send[r]));
  }
  return got;
}

constexpr Op kOps[] = {Op::all_reduce,   Op::reduce_scatter, Op::all_gather,  Op::broadcast,
                       Op::send_receive, Op::all_to_all,     Op::all_to_all_v};

TEST(PeerWork, TheCheckAcceptsWhatTheOperationMakes) {
  for (const Op op : kOps)
    for (const int ranks : {2, 4, 8})
      for (const std::size_t bytes : {32UL, 160UL, 4096UL}) {
        const World world(op, bytes, ranks, 3);
        for (std::size_t r = 0; r < world.works.size(); ++r)
          EXPECT_EQ(fault(world.works[r], 3, result(world, r).data()), "") << static_cast<int>(op) << ' ' << ranks;
      }
}

TEST(PeerWork, TheCheckSeesAnyOneElementSpoilt) {
  for (const Op op : kOps) {
    const World world(op, 160, 4, 1);
    for (std::size_t r = 0; r < world.works.size(); ++r)
      for (std::size_t i = 0; i < world.works[r].out_count(); ++i) {
        auto spoilt = result(world, r);
        spoilt[i] += 1;
        EXPECT_NE(fault(world.works[r], 1, spoilt.data()).find("element " + std::to_string(i) + " of"),
                  std::string::npos);
      }
  }
}

TEST(PeerWork, TheCheckSeesResultsOfAnEarlierRoundAndUntouchedMemory) {
  for (const Op op : kOps) {
    const World world(op, 160, 4, 1);
    EXPECT_NE(fault(world.works[1], 2, result(world, 1).data()), "");
    EXPECT_NE(fault(world.works[1], 1, world.out[1].data()), "");
  }
}

TEST(PeerWork, BlocksThatDoNotDivideAreRefused) {
  EXPECT_FALSE(make_work(Op::all_gather, 8, {0, 4}));
  EXPECT_FALSE(make_work(Op::all_reduce, 2, {0, 4}));
  EXPECT_FALSE(make_work(Op::all_to_all_v, 36, {0, 3}));
  EXPECT_TRUE(make_work(Op::all_reduce, 4, {0, 3}));
}

TEST(PeerWork, UnevenBlocksAddUpToTheWholeAndAgreeInPairs) {
  const World world(Op::all_to_all_v, 8 * 7 * sizeof(float), 8, 0);
  for (std::size_t i = 0; i < 8; ++i) {
    std::size_t all = 0;
    for (std::size_t j = 0; j < 8; ++j) {
      all += world.works[i].send[j];
      EXPECT_EQ(world.works[i].send[j], world.works[j].send[i]);
    }
    EXPECT_EQ(all, world.works[i].count);
  }
}

}  // namespace
}  // namespace peers
