// What memory allows:  roofline DIRECTORY RANKS
//
// Takes the commands of loop.h as one speaker for all ranks, and moves the same bytes as the operation without any
// synchronisation: threads, as many as there are cores and ranks, each do their part again and again. The fastest of the
// loops, and of the ways to divide the work among ranks, is chosen for each case before it is timed.
//
//   stream   one more command: `stream COPY ADD TRIAD` in GB/s, all threads together, on arrays far larger than the caches,
//            the fastest loop of each, counted as STREAM counts (no read of what is only written)
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/peers/loop.h"
#include "bench/peers/roofline_loops.h"
#include "bench/peers/roofline_parts.h"

namespace peers {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kStreamBytes = kColdBytes;  // of each of three arrays
constexpr int kStreamTries = 5;
constexpr double kChoiceNs = 1e6;  // how long a candidate is tried
constexpr int kChoiceTries = 5;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte, Free>;

// With huge pages where the system has them: a roofline has no use for page faults and few translations.
Memory allocate(std::size_t bytes) {
  constexpr std::size_t kHuge = std::size_t{2} << 20;
  const std::size_t grain = bytes < kHuge ? kPage : kHuge;
  const std::size_t whole = (bytes + grain - 1) / grain * grain;
  Memory memory(static_cast<std::byte*>(std::aligned_alloc(grain, whole)));
  if (memory && whole >= kHuge) madvise(memory.get(), whole, MADV_HUGEPAGE);
  return memory;
}

// Runs body(thread) on `threads` threads that begin together. Returns the longest time in nanoseconds.
template <class Body>
double together(int threads, Body body) {
  std::atomic<int> here{0};  // released by each thread when it is ready, acquired by all before they begin
  std::vector<double> ns(static_cast<std::size_t>(threads));
  const auto one = [&](int thread) {
    stay_on_a_core({thread, threads});
    here.fetch_add(1);
    while (here.load() < threads) {
    }
    const auto begin = Clock::now();
    body(thread);
    ns[static_cast<std::size_t>(thread)] = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 0; thread < threads; ++thread) others.emplace_back(one, thread);
  }
  return *std::max_element(ns.begin(), ns.end());
}

// A move with the pointers of one pair filled in.
struct Bound {
  std::vector<const float*> from;
  std::vector<float*> to;
  std::size_t count;
};

class Roofline {
 public:
  explicit Roofline(int ranks)
      : ranks_(ranks), threads_(std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, ranks)) {}

  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string verb, op, heat;
    std::size_t bytes = 0, iterations = 0;
    words >> verb >> op >> bytes >> heat >> iterations;
    if (verb == "stream") return stream();
    if (verb == "wait") return "wait 0";
    if (verb == "free") return release(), "ok";
    if (const std::string why = prepare(op, bytes, heat == "cold"); !why.empty()) return why;
    if (verb == "check") return check();
    iterations = std::max<std::size_t>(1, iterations);
    run(iterations / 8 + 1);
    return "time " + std::to_string(run(iterations) / static_cast<double>(iterations));
  }

 private:
  void release() {
    ready_for_.clear();
    in_.clear();
    out_.clear();
    works_.clear();
    bound_.clear();
    next_ = 0;
  }

  std::string prepare(const std::string& name, std::size_t bytes, bool cold) {
    const std::string wanted = name + ' ' + std::to_string(bytes) + (cold ? " cold" : " warm");
    if (wanted == ready_for_) return {};
    release();
    const auto op = parse_op(name);
    if (!op) return "error there is no operation '" + name + "'";
    for (int rank = 0; rank < ranks_; ++rank) {
      const auto work = make_work(*op, bytes, {rank, ranks_});
      if (!work) return "unsupported " + std::to_string(bytes) + " bytes do not divide among the ranks";
      works_.push_back(*work);
    }
    layout_ = layout_of(works_[0], cold);
    for (int rank = 0; rank < ranks_; ++rank) {
      in_.push_back(allocate(layout_.pairs * layout_.in_stride));
      out_.push_back(allocate(layout_.pairs * layout_.out_stride));
      if (!in_.back() || !out_.back()) return "error out of memory";
    }
    for (std::size_t pair = 0; pair < layout_.pairs; ++pair) fill_pair(pair, 0);
    choose();
    ready_for_ = wanted;
    return {};
  }

  float* in_at(std::size_t rank, std::size_t pair) const {
    return reinterpret_cast<float*>(in_[rank].get() + pair * layout_.in_stride);
  }
  float* out_at(std::size_t rank, std::size_t pair) const {
    return reinterpret_cast<float*>(out_[rank].get() + pair * layout_.out_stride);
  }
  void fill_pair(std::size_t pair, std::size_t round) {
    for (std::size_t rank = 0; rank < works_.size(); ++rank)
      fill(works_[rank], round, in_at(rank, pair), out_at(rank, pair));
  }

  // bound_[thread]: what it does to pair 0.
  void bind(Way way) {
    bound_.assign(static_cast<std::size_t>(threads_), {});
    for (int rank = 0; rank < ranks_; ++rank)
      for (const Part& part : parts_of(works_, rank, way)) {
        if (part.count == 0) continue;
        Bound bound{{}, {}, part.count};
        const bool in_place = works_[0].op == Op::broadcast;
        for (const auto [from, element] : part.from) {
          const auto r = static_cast<std::size_t>(from);
          bound.from.push_back((in_place ? out_at(r, 0) : in_at(r, 0)) + element);
        }
        for (const auto [to, element] : part.to) bound.to.push_back(out_at(static_cast<std::size_t>(to), 0) + element);
        bound_[static_cast<std::size_t>(rank % threads_)].push_back(std::move(bound));
      }
  }

  void choose() {
    double best = 0;
    Way best_way = Way::pull;
    Loop best_loop = Loop::regular;
    for (const Way way : {Way::pull, Way::spread}) {
      bind(way);
      for (const Loop loop : kLoops) {
        loop_ = loop;
        const auto iterations = static_cast<std::size_t>(std::clamp(kChoiceNs / run(1), 1.0, 10000.0));
        double least = run(iterations);
        for (int i = 1; i < kChoiceTries; ++i) least = std::min(least, run(iterations));
        least /= static_cast<double>(iterations);
        if (best == 0 || least < best) best = least, best_way = way, best_loop = loop;
      }
    }
    bind(best_way);
    loop_ = best_loop;
  }

  // Nanoseconds of all iterations.
  double run(std::size_t iterations) {
    const std::size_t first = next_;
    next_ = (next_ + iterations) % layout_.pairs;
    return together(threads_,
                    [&](int thread) { work_of(bound_[static_cast<std::size_t>(thread)], first, iterations); });
  }

  void work_of(const std::vector<Bound>& bounds, std::size_t first, std::size_t iterations) const {
    const std::size_t in_step =
        (works_[0].op == Op::broadcast ? layout_.out_stride : layout_.in_stride) / sizeof(float);
    const std::size_t out_step = layout_.out_stride / sizeof(float);
    std::vector<Bound> now = bounds;
    std::size_t pair = first;
    for (std::size_t i = 0; i < iterations; ++i) {
      for (std::size_t b = 0; b < bounds.size(); ++b) {
        for (std::size_t s = 0; s < now[b].from.size(); ++s) now[b].from[s] = bounds[b].from[s] + pair * in_step;
        for (std::size_t t = 0; t < now[b].to.size(); ++t) now[b].to[t] = bounds[b].to[t] + pair * out_step;
        move(loop_, {now[b].from, now[b].to, now[b].count});
      }
      if (++pair == layout_.pairs) pair = 0;
    }
  }

  // The moves must make what the operation makes.
  std::string check() {
    next_ = layout_.pairs - 1;
    fill_pair(next_, 1);
    run(1);
    for (std::size_t rank = 0; rank < works_.size(); ++rank)
      if (const std::string what = fault(works_[rank], 1, out_at(rank, layout_.pairs - 1)); !what.empty())
        return "wrong " + what;
    return "ok";
  }

  std::string stream() {
    const std::size_t count = kStreamBytes / sizeof(float);
    std::vector<Memory> arrays;
    std::vector<float*> at;
    for (int i = 0; i < 3; ++i) {
      arrays.push_back(allocate(kStreamBytes));
      if (!arrays.back()) return "error out of memory";
      at.push_back(reinterpret_cast<float*>(arrays.back().get()));
      std::fill_n(at.back(), count, 1.0F);
    }
    const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    const auto rate = [&](std::size_t sources, auto kernel) {
      double least = 1e300;
      for (const Loop loop : kLoops)
        for (int i = 0; i < kStreamTries; ++i)
          least = std::min(least, together(threads, [&](int thread) {
                             const Slice slice =
                                 slice_of(count, static_cast<std::size_t>(thread), static_cast<std::size_t>(threads));
                             const float* from[] = {at[0] + slice.begin, at[1] + slice.begin};
                             float* const to[] = {at[2] + slice.begin};
                             kernel(loop, Move{{from, sources}, to, slice.count});
                           }));
      return static_cast<double>((sources + 1) * kStreamBytes) / least;
    };
    std::ostringstream text;
    text << "stream " << rate(1, move) << ' ' << rate(2, move) << ' ' << rate(2, triad);
    return text.str();
  }

  int ranks_;
  int threads_;
  std::string ready_for_;
  std::vector<Work> works_;  // by rank, and so the memory
  std::vector<Memory> in_, out_;
  PairLayout layout_;
  std::vector<std::vector<Bound>> bound_;
  Loop loop_ = Loop::regular;
  std::size_t next_ = 0;  // pair
};

}  // namespace
}  // namespace peers

int main(int argc, char** argv) {
  const int ranks = argc == 3 ? std::atoi(argv[2]) : 0;
  if (ranks < 1) return std::fprintf(stderr, "usage: roofline DIRECTORY RANKS\n"), 2;
  peers::Roofline roofline(ranks);
  return peers::serve_lines(argv[1], 0, "memory",
                            [&roofline](const std::string& line) { return roofline.answer(line); });
}
