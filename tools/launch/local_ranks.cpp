#include "tools/launch/local_ranks.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "comm/bootstrap/control.h"

namespace sluice::tools {
namespace {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// A socket pair used in one direction: unlike a pipe's, its writer can be told not to raise SIGPIPE.
Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return system_error("socket pair for the unique id", errno);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Status write_id(int fd, const UniqueId& id) {
  if (::send(fd, id.data(), id.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(id.size())) return {};
  return system_error("writing the unique id", errno);
}

Result<UniqueId> read_id(int fd, Nanoseconds at_most) {
  pollfd wanted{.fd = fd, .events = POLLIN, .revents = 0};
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(at_most);
  const int ready = ::poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(milliseconds.count(), 1'000'000'000)));
  if (ready < 0) return system_error("waiting for the unique id", errno);
  if (ready == 0) return Error{Code::timeout, "no unique id came from rank 0 before the join deadline"};
  UniqueId id{};
  if (::read(fd, id.data(), id.size()) != static_cast<ssize_t>(id.size()))
    return Error{Code::peer_lost, "rank 0 ended before it made the unique id"};
  return id;
}

int report(const Error& error) {
  std::fprintf(stderr, "%s: %s\n", std::string(name(error.code)).c_str(), error.text.c_str());
  return 1;
}

// The pipes of one launch: `up` from process 0, `down[i]` to process i.
struct Pipes {
  Pipe up;
  std::vector<Pipe> down;
};

Result<Pipes> make_pipes(int processes) {
  Pipes pipes;
  SLUICE_TRY_ASSIGN(pipes.up, make_pipe());
  for (int i = 0; i < processes; ++i) {
    SLUICE_TRY_ASSIGN(Pipe down, make_pipe());
    pipes.down.push_back(std::move(down));
  }
  return pipes;
}

// In the parent: takes the id from process 0 (or from other launchers) and hands it to the rest. The parent's ends are closed
// on return, so that nobody waits for what will not come.
Status hand_round(Pipes pipes, const LocalRanksOptions& options, Nanoseconds deadline) {
  pipes.up.write.reset();
  for (Pipe& down : pipes.down) down.read.reset();
  std::optional<UniqueId> id;
  if (options.holds_rank_0) {
    SLUICE_TRY_ASSIGN(id, read_id(pipes.up.read.get(), deadline));
  }
  if (options.share) {
    SLUICE_TRY_ASSIGN(id, options.share(id));
  }
  if (!id) return {Code::invalid_argument, "no way to learn the unique id: the job's rank 0 is elsewhere"};
  for (std::size_t i = options.holds_rank_0 ? 1 : 0; i < pipes.down.size(); ++i)
    static_cast<void>(write_id(pipes.down[i].write.get(), *id));  // fails for a process that ended: waiting will name it
  return {};
}

// In child `index`: makes the id or receives it. Keeps no other end open, so that a dead process is noticed.
Result<UniqueId> obtain_id(Pipes& pipes, int index, bool makes_it, const Config& config) {
  const UniqueFd up = std::move(pipes.up.write);
  const UniqueFd down = std::move(pipes.down[static_cast<std::size_t>(index)].read);
  pipes = Pipes();
  if (!makes_it) return read_id(down.get(), config.duration(Setting::join_deadline));
  SLUICE_TRY_ASSIGN(const UniqueId id, Control::make_unique_id(config));
  SLUICE_TRY(write_id(up.get(), id));
  return id;
}

Result<UniqueId> id_without_fork(const LocalRanksOptions& options, const Config& config) {
  std::optional<UniqueId> id;
  if (options.holds_rank_0) {
    SLUICE_TRY_ASSIGN(id, Control::make_unique_id(config));
  }
  if (options.share) return options.share(id);
  if (!id) return Error{Code::invalid_argument, "no way to learn the unique id: the job's rank 0 is elsewhere"};
  return *id;
}

}  // namespace

Result<LaunchOutcome> run_local_ranks(const LocalRanksOptions& options, const Config& config,
                                      const std::function<int(int index, const UniqueId& id)>& body) {
  if (options.processes == 1) {
    SLUICE_TRY_ASSIGN(const UniqueId id, id_without_fork(options, config));
    LaunchOutcome outcome;
    outcome.exit_code = body(0, id);
    return outcome;
  }
  if (options.processes < 1 || options.processes > kProcessesMax) return run_processes({.processes = options.processes}, {});
  SLUICE_TRY_ASSIGN(Pipes pipes, make_pipes(options.processes));
  LaunchOptions launch{.processes = options.processes, .grace = options.grace};
  launch.after_fork = [&] { return hand_round(std::move(pipes), options, config.duration(Setting::join_deadline)); };
  return run_processes(launch, [&](int index) {
    const auto id = obtain_id(pipes, index, options.holds_rank_0 && index == 0, config);
    return id.ok() ? body(index, *id) : report(id.error());
  });
}

int run_threads(int threads, const std::function<int(int index)>& body) {
  std::vector<int> codes(static_cast<std::size_t>(threads), 0);
  std::vector<std::thread> running;
  for (int i = 1; i < threads; ++i)
    running.emplace_back([&codes, &body, i] { codes[static_cast<std::size_t>(i)] = body(i); });
  codes[0] = body(0);
  for (std::thread& one : running) one.join();
  for (const int code : codes)
    if (code != 0) return code;
  return 0;
}

}  // namespace sluice::tools
