#include "comm/bootstrap/environment.h"

#include <utility>

#include "base/log.h"
#include "comm/bootstrap/rendezvous_file.h"
#include "comm/bootstrap/root_listener.h"
#include "comm/bootstrap/secrets.h"
#include "comm/bootstrap/tree_control.h"

namespace sluice {
namespace {

// What every way of joining needs.
struct Joiner {
  const Config& config;
  const LaunchEnvironment& launch;
  std::uint64_t tuning;
};

JoinPlan plan_from(const Joiner& joiner) {
  const Config& config = joiner.config;
  JoinPlan plan = plan_of(joiner.launch.rank, joiner.launch.ranks, config.duration(Setting::join_deadline), config);
  plan.self.tuning = joiner.tuning;
  return plan;
}

Result<std::unique_ptr<Control>> join_by_id(const Joiner& joiner) {
  const auto& [config, launch, tuning] = joiner;
  const auto id = unique_id_from_hex(launch.unique_id);
  if (!id.ok()) return Error{Code::invalid_argument, "environment variable SLUICE_UNIQUE_ID: " + id.error().text};
  Control::Join join;
  join.id = *id;
  join.rank = launch.rank;
  join.ranks = launch.ranks;
  join.deadline = config.duration(Setting::join_deadline);
  join.config = &config;
  join.tuning = tuning;
  return Control::join(join);
}

// Rank 0 writes `rendezvous` into the file and takes it away when the join is over.
Result<std::unique_ptr<Control>> join_as_writer(JoinPlan plan, const std::string& path, const std::string& job,
                                                const Rendezvous& rendezvous) {
  SLUICE_TRY(write_rendezvous_file(path, rendezvous, job));
  plan.source = [rendezvous] { return Result<Rendezvous>(rendezvous); };
  auto joined = join_by_plan(std::move(plan));
  remove_rendezvous_file(path, rendezvous);
  return joined;
}

Result<std::unique_ptr<Control>> join_as_reader(JoinPlan plan, const std::string& path, const std::string& job) {
  plan.source = [path, job] { return read_rendezvous_file(path, job); };
  plan.source_changes = true;
  return join_by_plan(std::move(plan));
}

Result<std::unique_ptr<Control>> join_by_file(const Joiner& joiner) {
  const LaunchEnvironment& launch = joiner.launch;
  JoinPlan plan = plan_from(joiner);
  if (launch.rank != 0) return join_as_reader(std::move(plan), launch.rendezvous_file, launch.job);
  SLUICE_TRY_ASSIGN(const Rendezvous rendezvous, open_rendezvous(joiner.config));
  return join_as_writer(std::move(plan), launch.rendezvous_file, launch.job, rendezvous);
}

// All ranks on this host: nothing but a Unix socket is needed.
Result<std::unique_ptr<Control>> join_by_job(const Joiner& joiner) {
  const LaunchEnvironment& launch = joiner.launch;
  const std::string cure =
      ": set SLUICE_RENDEZVOUS_FILE to a path that all ranks see, or SLUICE_UNIQUE_ID, or join through MPI";
  if (launch.job.empty())
    return Error{Code::invalid_argument,
                 "the launcher (" + launch.source + ") gives no name of the job to meet by" + cure};
  if (launch.local_ranks > 0 && launch.local_ranks != launch.ranks)
    return Error{Code::invalid_argument, "of the job's " + std::to_string(launch.ranks) + " ranks " +
                                             std::to_string(launch.local_ranks) +
                                             " are on this host, so they can't meet by a local file" + cure};
  SLUICE_TRY_ASSIGN(const std::string directory, private_directory(environment_variable("XDG_RUNTIME_DIR")));
  const Secret name = derive_secret(launch.job, launch.source);
  const std::string path = directory + "/sluice-job-" + hex(std::span(name).first(8));
  JoinPlan plan = plan_from(joiner);
  if (launch.rank != 0) return join_as_reader(std::move(plan), path, launch.job);
  SLUICE_TRY_ASSIGN(const UniqueId id, make_local_unique_id());
  SLUICE_TRY_ASSIGN(const Rendezvous rendezvous, to_rendezvous(id));
  return join_as_writer(std::move(plan), path, launch.job, rendezvous);
}

Result<std::unique_ptr<Control>> join_by_torchrun(const Joiner& joiner) {
  const LaunchEnvironment& launch = joiner.launch;
  if (launch.master_address.empty() || launch.master_port < 1 || launch.master_port > 65535)
    return Error{Code::invalid_argument, "RANK and WORLD_SIZE are set, but MASTER_ADDR ('" + launch.master_address +
                                             "') or MASTER_PORT (" + std::to_string(launch.master_port) +
                                             ") is not usable: set both, as torchrun does, or SLUICE_RENDEZVOUS_FILE"};
  if (launch.secret.empty() && launch.rank == 0)
    log(LogLevel::warn, 0, "SLUICE_SECRET is not set: whoever knows MASTER_ADDR and MASTER_PORT can join this job");
  JoinPlan plan = plan_from(joiner);
  plan.source = [launch] { return torchrun_rendezvous(launch); };
  return join_by_plan(std::move(plan));
}

bool names_loopback(const std::string& host) { return host == "localhost" || host.starts_with("127."); }

}  // namespace

Result<Rendezvous> torchrun_rendezvous(const LaunchEnvironment& launch) {
  Rendezvous rendezvous;
  const std::string job =
      launch.master_address + "|" + std::to_string(launch.master_port) + "|" + std::to_string(launch.ranks);
  rendezvous.secret = derive_secret(launch.secret, "sluice torchrun|" + job);
  const int after = launch.master_port + 1;
  rendezvous.port =
      static_cast<std::uint16_t>(after + kTorchrunPorts <= 65536 ? after : launch.master_port - kTorchrunPorts);
  rendezvous.ports = kTorchrunPorts;
  std::uint32_t address = kLoopbackAddress;
  if (!names_loopback(launch.master_address) && launch.rank != 0) {
    const auto resolved = resolve(launch.master_address);
    if (!resolved.ok()) return Error{Code::timeout, resolved.error().text};
    address = *resolved;
  }
  rendezvous.addresses = {address};
  if (!is_loopback(address) || names_loopback(launch.master_address)) return rendezvous;
  // This is rank 0's host, where its own name often leads to loopback: but other hosts may come.
  SLUICE_TRY_ASSIGN(const std::vector<InterfaceAddress> interfaces, list_interfaces());
  rendezvous.addresses = root_addresses(interfaces);
  // More than one, so that rank 0 listens on all of them.
  if (rendezvous.addresses.size() == 1) rendezvous.addresses.push_back(kLoopbackAddress);
  return rendezvous;
}

Result<std::unique_ptr<Control>> control_from_environment(const Config& config, const LaunchEnvironment& launch,
                                                          std::uint64_t tuning) {
  if (launch.rank < 0 && !launch.rendezvous_file.empty())
    return Error{
        Code::invalid_argument,
        "SLUICE_RENDEZVOUS_FILE is set, but no rank: set SLUICE_RANK and SLUICE_RANKS, or use a launcher that does"};
  if (launch.rank < 0 && !launch.unique_id.empty())
    return Error{Code::invalid_argument, "SLUICE_UNIQUE_ID is set, but no rank: set SLUICE_RANK and SLUICE_RANKS"};
  if (launch.rank < 0 || launch.ranks == 1) return Control::alone();
  const Joiner joiner{config, launch, tuning};
  if (!launch.unique_id.empty()) return join_by_id(joiner);
  if (!launch.rendezvous_file.empty()) return join_by_file(joiner);
  if (launch.source == "torchrun") return join_by_torchrun(joiner);
  return join_by_job(joiner);
}

}  // namespace sluice
