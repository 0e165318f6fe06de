// A job of processes, forked by the test: each child runs a function and ends. Fork before any thread exists in the parent.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace sluice::test {

class Process {
 public:
  // The child gets its end of a stream to the parent; it ends with `body`'s value, or with SIGKILL when the parent does.
  explicit Process(const std::function<int(int stream)>& body) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) ADD_FAILURE() << "no socket pair";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(ends[0]);
      ::_exit(body(ends[1]));
    }
    ::close(ends[1]);
    stream_.reset(ends[0]);
  }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), stream_(std::move(other.stream_)) {}
  Process(const Process&) = delete;
  ~Process() {
    if (pid_ <= 0) return;
    signal(SIGKILL);
    signal(SIGCONT);
    wait();
  }

  void signal(int number) const { ::kill(pid_, number); }
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  void command(char one) const { EXPECT_EQ(::send(stream_.get(), &one, 1, MSG_NOSIGNAL), 1); }
  // One line that the child wrote; "" at its end or when nothing comes within `at_most`.
  std::string line(Nanoseconds at_most = std::chrono::seconds(20)) {
    const Nanoseconds until = RealClock::instance().now() + at_most;
    while (true) {
      if (const auto end = text_.find('\n'); end != std::string::npos) {
        const std::string first = text_.substr(0, end);
        text_.erase(0, end + 1);
        return first;
      }
      pollfd poll{stream_.get(), POLLIN, 0};
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - RealClock::instance().now()).count();
      if (left <= 0 || ::poll(&poll, 1, static_cast<int>(left)) <= 0) return "";
      char buffer[512];
      const ssize_t got = ::read(stream_.get(), buffer, sizeof buffer);
      if (got <= 0) return "";
      text_.append(buffer, static_cast<std::size_t>(got));
    }
  }

 private:
  pid_t pid_ = -1;
  UniqueFd stream_;
  std::string text_;
};

inline void tell(int stream, const std::string& line) {
  const std::string whole = line + "\n";
  if (::write(stream, whole.data(), whole.size()) < 0) ::_exit(99);
}

}  // namespace sluice::test
