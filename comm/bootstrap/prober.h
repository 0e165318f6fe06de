// Asks whether processes still live, without their help: connects to their listeners and closes again. A stopped process is
// alive, for its kernel still answers; a dead one no longer listens; a machine that is gone says nothing.
//
//   Threads   the loop's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "base/types.h"
#include "comm/bootstrap/event_loop.h"
#include "comm/bootstrap/sockets.h"

namespace sluice {

inline constexpr Nanoseconds kProbeTime = std::chrono::milliseconds(500);

enum class Verdict : std::uint8_t { alive, gone, silent };

class Prober {
 public:
  struct Target {
    Rank rank = 0;
    Endpoint at;
  };
  struct Answer {
    Rank rank = 0;
    Verdict verdict = Verdict::silent;
  };
  using Done = std::function<void(const std::vector<Answer>&)>;

  explicit Prober(EventLoop& loop) : loop_(loop) {}
  ~Prober() { forget(); }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  bool busy() const { return done_ != nullptr; }
  // Only when not busy. `done` is called once, after at most kProbeTime, never from inside this call.
  void probe(const std::vector<Target>& targets, Done done);
  // Drops the round under way, if any.
  void forget();

 private:
  struct Question {
    UniqueFd fd;
    std::uint64_t watch = 0;
  };
  void answer(Rank rank, Verdict verdict);
  void finish();

  EventLoop& loop_;
  std::map<Rank, Question> open_;
  std::vector<Answer> answers_;
  Done done_;
  std::uint64_t timer_ = 0;
};

}  // namespace sluice
