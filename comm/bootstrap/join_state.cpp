#include "comm/bootstrap/join_state.h"

#include <utility>

#include "comm/bootstrap/peer_info.h"
#include "comm/bootstrap/secrets.h"

namespace sluice {
namespace {

constexpr std::size_t kRunsListed = 20;

}  // namespace

JoinPlan plan_of(Rank rank, int ranks, Nanoseconds deadline, const Config& config) {
  JoinPlan plan;
  plan.rank = rank;
  plan.ranks = ranks;
  plan.deadline = deadline;
  plan.interface = config.text(Setting::interface);
  plan.port_range = config.text(Setting::port_range);
  plan.link_deadline = config.duration(Setting::deadline);
  plan.self = this_process();
  return plan;
}

Status open_own_listeners(Channels& channels, std::uint32_t address, std::uint32_t told, const std::string& port_range,
                          PeerInfo& self) {
  SLUICE_TRY_ASSIGN(const PortRange ports, parse_port_range(port_range));
  SLUICE_TRY_ASSIGN(Listener tcp, listen_tcp(address, ports));
  std::array<std::byte, 16> random{};
  SLUICE_TRY(fill_random(random));
  SLUICE_TRY_ASSIGN(Listener local, listen_unix("sluice-" + hex(random)));
  self.address = told;
  self.port = tcp.at.port;
  self.unix_name = local.at.unix_name;
  SLUICE_TRY(channels.listen(std::move(tcp)));
  return channels.listen(std::move(local));
}

std::string list_ranks(const std::vector<Rank>& ranks) {
  std::string text;
  std::size_t runs = 0;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (++runs > kRunsListed) return "ranks " + text + ", and more";
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[first]);
    if (last > first) text += (last == first + 1 ? ", " : "-") + std::to_string(ranks[last]);
    first = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string seconds_text(Nanoseconds time) {
  const std::string text = std::to_string(std::chrono::duration<double>(time).count());
  return text.substr(0, text.find('.') + 2) + " s";
}

}  // namespace sluice
