#include "comm/bootstrap/prober.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

namespace sluice {
namespace {

Verdict verdict_of(int error) {
  if (error == 0 || error == EAGAIN) return Verdict::alive;
  return error == ECONNREFUSED || error == ECONNRESET ? Verdict::gone : Verdict::silent;
}

}  // namespace

void Prober::probe(const std::vector<Target>& targets, Done done) {
  done_ = std::move(done);
  for (const Target& target : targets) {
    Connecting connecting = start_connecting(target.at);
    if (connecting.error != 0 || !target.at.unix_name.empty()) {  // a Unix socket answers at once
      answers_.push_back({target.rank, verdict_of(connecting.error)});
      continue;
    }
    Question& question = open_[target.rank];
    question.fd = std::move(connecting.fd);
    const Rank rank = target.rank;
    question.watch = loop_.watch(question.fd.get(), EPOLLOUT, [this, rank](std::uint32_t) {
      answer(rank, verdict_of(connect_error(open_.at(rank).fd.get())));
    });
  }
  timer_ = loop_.after(open_.empty() ? Nanoseconds(0) : kProbeTime, [this] { finish(); });
}

void Prober::forget() {
  for (auto& [rank, question] : open_) loop_.unwatch(question.watch, question.fd.get());
  open_.clear();
  answers_.clear();
  loop_.cancel(timer_);
  done_ = nullptr;
}

void Prober::answer(Rank rank, Verdict verdict) {
  Question& question = open_.at(rank);
  loop_.unwatch(question.watch, question.fd.get());
  open_.erase(rank);
  answers_.push_back({rank, verdict});
  if (open_.empty()) finish();
}

void Prober::finish() {
  for (const auto& [rank, question] : open_) answers_.push_back({rank, Verdict::silent});
  const std::vector<Answer> answers = std::exchange(answers_, {});
  const Done done = std::exchange(done_, nullptr);
  forget();
  done(answers);
}

}  // namespace sluice
