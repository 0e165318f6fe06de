#include "base/config.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>

#include "base/log.h"
#include "base/types.h"

extern char** environ;

namespace sluice {
namespace {

enum class Kind : std::uint8_t { word, bytes, number, duration };

constexpr std::array<SettingRow, kSettings> kRows{{
    {Setting::log, "log", "SLUICE_LOG", "warn", "how much is written to standard error: off error warn info debug"},
    {Setting::transport, "transport", "SLUICE_TRANSPORT", "auto",
     "auto: shared memory on a host, TCP between; shm, tcp, loop: only that"},
    {Setting::algorithm, "algorithm", "SLUICE_ALGORITHM", "",
     "forces NAME for every collective that has it, or COLLECTIVE=NAME,..."},
    {Setting::order, "order", "SLUICE_ORDER", "fast", "order class of reductions that do not say: fast canonical"},
    {Setting::slice_bytes, "slice_bytes", "SLUICE_SLICE_BYTES", "0",
     "bytes of a slice; 0: the tuner decides; at most slot_bytes"},
    {Setting::slices_in_flight, "slices_in_flight", "SLUICE_SLICES_IN_FLIGHT", "4",
     "slices of one operation that are under way together"},
    {Setting::slot_bytes, "slot_bytes", "SLUICE_SLOT_BYTES", "128K", "bytes of one slot of a flow"},
    {Setting::slots, "slots", "SLUICE_SLOTS", "8", "slots of a flow: its credits"},
    {Setting::arena_bytes, "arena_bytes", "SLUICE_ARENA_BYTES", "16G",
     "address space of a rank's shared arena; only touched pages take memory"},
    {Setting::deadline, "deadline", "SLUICE_DEADLINE", "10min",
     "an operation without progress for so long is a timeout"},
    {Setting::join_deadline, "join_deadline", "SLUICE_JOIN_DEADLINE", "60s",
     "how long a rank waits for the others to join"},
    {Setting::interface, "interface", "SLUICE_INTERFACE", "",
     "network interface or subnet (10.0.0.0/8); empty: the one that reaches the root"},
    {Setting::port_range, "port_range", "SLUICE_PORT_RANGE", "",
     "ports that may be listened on, FIRST-LAST; empty: any free one"},
    {Setting::spin, "spin", "SLUICE_SPIN", "50us", "how long a waiter spins before it yields and sleeps"},
    {Setting::loop_seed, "loop_seed", "SLUICE_LOOP_SEED", "1", "seed of the loop transport's delays and reordering"},
    {Setting::stream_bytes, "stream_bytes", "SLUICE_STREAM_BYTES", "0",
     "buffers of all ranks of the host together from which results are stored past the caches; 0: the last-level "
     "cache"},
    {Setting::lanes, "lanes", "SLUICE_LANES", "",
     "what code leaves open of a lane: "
     "NAME[:PRIORITY[:WEIGHT]][:min=RATE][:max=RATE][:flight=BYTES][:copy=RATE][:cores=CORES],..."},
    {Setting::lane_delay, "lane_delay", "SLUICE_LANE_DELAY", "75us",
     "how long what left on a lane may hold up more urgent lanes that use the same network"},
    {Setting::trace, "trace", "SLUICE_TRACE", "auto",
     "folder for the last events when operations fail, read by sluice trace; auto: /tmp/sluice-UID (TMPDIR); off: "
     "none"},
    {Setting::metrics, "metrics", "SLUICE_METRICS", "",
     "folder of rank-N.prom, the lanes' counters for Prometheus, every 10 s and at the end; empty: none"},
    {Setting::tuning, "tuning", "SLUICE_TUNING", "auto",
     "measured times: auto: those that sluice tune wrote for this machine; off: none; else a file"},
}};

Kind kind_of(Setting setting) {
  switch (setting) {
    case Setting::slice_bytes:
    case Setting::slot_bytes:
    case Setting::stream_bytes:
    case Setting::arena_bytes: return Kind::bytes;
    case Setting::slices_in_flight:
    case Setting::slots:
    case Setting::loop_seed: return Kind::number;
    case Setting::deadline:
    case Setting::join_deadline:
    case Setting::lane_delay:
    case Setting::spin: return Kind::duration;
    default: return Kind::word;
  }
}

struct Range {
  std::int64_t least;
  std::int64_t most;
};

constexpr std::int64_t kYear = std::int64_t{525'600} * 60'000'000'000;  // nanoseconds

std::optional<Range> range_of(Setting setting) {
  switch (setting) {
    case Setting::slice_bytes: return Range{0, 1 << 30};
    case Setting::stream_bytes: return Range{0, std::int64_t{1} << 50};
    case Setting::slot_bytes: return Range{1024, 1 << 28};
    case Setting::arena_bytes: return Range{1 << 20, std::int64_t{1} << 44};
    case Setting::slices_in_flight: return Range{1, 1024};
    case Setting::slots: return Range{4, 1024};
    case Setting::deadline: return Range{1'000'000, kYear};
    case Setting::join_deadline: return Range{1'000'000, kYear};
    case Setting::spin: return Range{0, 1'000'000'000};
    case Setting::lane_delay: return Range{1'000, 10'000'000'000};
    default: return std::nullopt;
  }
}

std::span<const std::string_view> words_of(Setting setting) {
  static constexpr std::array<std::string_view, 5> kLog{"off", "error", "warn", "info", "debug"};
  static constexpr std::array<std::string_view, 4> kTransport{"auto", "shm", "tcp", "loop"};
  static constexpr std::array<std::string_view, 2> kOrder{"fast", "canonical"};
  if (setting == Setting::log) return kLog;
  if (setting == Setting::transport) return kTransport;
  if (setting == Setting::order) return kOrder;
  return {};
}

const SettingRow& row(Setting setting) { return kRows.at(static_cast<std::size_t>(setting)); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

Error bad(std::string_view what, std::string_view value, std::string_view allowed) {
  return {Code::invalid_argument,
          std::string(what) + " is '" + std::string(value) + "', but must be " + std::string(allowed)};
}

// In the largest unit that gives a whole number.
std::string format(Kind kind, std::int64_t number) {
  if (kind == Kind::bytes) return format_bytes(static_cast<std::size_t>(number));
  if (kind != Kind::duration) return std::to_string(number);
  constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kUnits{
      {{"min", 60'000'000'000}, {"s", 1'000'000'000}, {"ms", 1'000'000}, {"us", 1'000}}};
  for (const auto& [unit, nanoseconds] : kUnits)
    if (number != 0 && number % nanoseconds == 0) return std::to_string(number / nanoseconds) + std::string(unit);
  return std::to_string(number) + "ns";
}

// A number with one of `suffixes` behind it, scaled. nullopt: not a number, negative, or too large.
struct Suffix {
  std::string_view word;
  double scale;
};
std::optional<double> scaled(std::string_view text, std::span<const Suffix> suffixes) {
  text = trimmed(text);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0)) return std::nullopt;
  const std::string_view rest = trimmed(text.substr(static_cast<std::size_t>(end - text.data())));
  for (const Suffix& suffix : suffixes)
    if (rest == suffix.word) {
      value *= suffix.scale;
      return value < 0x1p62 ? std::optional<double>(value) : std::nullopt;
    }
  return std::nullopt;
}

Status read_file(const std::string& path, Config& config) {
  std::ifstream file(path);
  if (!file) return {Code::invalid_argument, "SLUICE_CONFIG names '" + path + "', which can't be read"};
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const auto equals = text.find('=');
    const std::string_view key = trimmed(text.substr(0, equals));
    const auto found = std::find_if(kRows.begin(), kRows.end(), [&](const SettingRow& one) { return one.name == key; });
    if (equals == std::string_view::npos || found == kRows.end())
      return {Code::invalid_argument, path + ":" + std::to_string(number) + ": '" + std::string(text) +
                                          "' is not `name = value` with a known name (sluice explain lists them)"};
    SLUICE_TRY(config.set(found->setting, std::string(trimmed(text.substr(equals + 1))), Origin::file));
  }
  return {};
}

// Variables that begin with SLUICE_ and are not settings.
constexpr std::array<std::string_view, 8> kOtherVariables{
    "SLUICE_CONFIG", "SLUICE_UNIQUE_ID",  "SLUICE_RENDEZVOUS_FILE", "SLUICE_RANK",
    "SLUICE_RANKS",  "SLUICE_LOCAL_RANK", "SLUICE_LOCAL_RANKS",     "SLUICE_SECRET"};

Status read_environment(Config& config) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (!text.starts_with("SLUICE_") || text.find('=') == std::string_view::npos) continue;
    const std::string_view key = text.substr(0, text.find('='));
    const auto found =
        std::find_if(kRows.begin(), kRows.end(), [&](const SettingRow& one) { return one.variable == key; });
    if (found != kRows.end()) {
      SLUICE_TRY(config.set(found->setting, std::string(text.substr(key.size() + 1)), Origin::environment));
    } else if (std::find(kOtherVariables.begin(), kOtherVariables.end(), key) == kOtherVariables.end()) {
      return {Code::invalid_argument,
              "environment variable " + std::string(key) +
                  " is not known; unset it or correct its spelling (sluice explain lists them)"};
    }
  }
  return {};
}

Result<int> integer_variable(const char* variable, int fallback) {
  const std::string text = environment_variable(variable);
  if (text.empty()) return fallback;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return bad(std::string("environment variable ") + variable, text, "a number of 0 or more");
  return value;
}

// The variables of one launcher.
constexpr std::string_view kSluice = "sluice";
constexpr std::string_view kTorchrun = "torchrun";
constexpr std::string_view kSlurm = "slurm";
struct Launcher {
  std::string_view source;
  const char* rank;
  const char* ranks;
  const char* local_rank;
  const char* local_ranks;
  const char* job;
};
constexpr std::array<Launcher, 5> kLaunchers{{
    {kSluice, "SLUICE_RANK", "SLUICE_RANKS", "SLUICE_LOCAL_RANK", "SLUICE_LOCAL_RANKS", ""},
    {kTorchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", ""},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"mpich", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", ""},
    {kSlurm, "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE", "SLURM_JOB_ID"},
}};

}  // namespace

std::string_view name(Origin origin) {
  switch (origin) {
    case Origin::default_value: return "default";
    case Origin::environment: return "environment";
    case Origin::file: return "file";
  }
  return "?";
}

const std::array<SettingRow, kSettings>& setting_rows() { return kRows; }

Config::Config() {
  for (const SettingRow& one : kRows)
    if (const Status set_default = set(one.setting, std::string(one.fallback), Origin::default_value);
        !set_default.ok())
      die_of(set_default.error());
}

Result<Config> Config::load() {
  Config config;
  SLUICE_TRY(read_environment(config));
  if (const std::string path = environment_variable("SLUICE_CONFIG"); !path.empty())
    SLUICE_TRY(read_file(path, config));
  return config;
}

Status Config::set(Setting setting, std::string value, Origin origin) {
  const SettingRow& one = row(setting);
  const std::string what = origin == Origin::environment ? "environment variable " + std::string(one.variable)
                                                         : "setting " + std::string(one.name);
  Value& target = values_.at(static_cast<std::size_t>(setting));
  std::int64_t number = 0;
  if (kind_of(setting) == Kind::bytes) {
    const auto parsed = parse_bytes(value);
    if (!parsed.ok()) return bad(what, value, "a size such as 4096, 64K, 1.5M or 2G");
    number = static_cast<std::int64_t>(*parsed);
  } else if (kind_of(setting) == Kind::duration) {
    const auto parsed = parse_duration(value);
    if (!parsed.ok()) return bad(what, value, "a duration such as 50us, 100ms, 30s or 10min");
    number = parsed->count();
  } else if (kind_of(setting) == Kind::number) {
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error != std::errc() || end != value.data() + value.size()) return bad(what, value, "a whole number");
  } else if (const auto words = words_of(setting);
             !words.empty() && std::find(words.begin(), words.end(), value) == words.end()) {
    std::string allowed = "one of";
    for (const std::string_view word : words) allowed += " " + std::string(word);
    return bad(what, value, allowed);
  }
  if (const auto range = range_of(setting); range && (number < range->least || number > range->most))
    return bad(what, value,
               "between " + format(kind_of(setting), range->least) + " and " + format(kind_of(setting), range->most));
  target = {std::move(value), origin, number};
  return {};
}

const std::string& Config::text(Setting setting) const { return values_.at(static_cast<std::size_t>(setting)).text; }
Origin Config::origin(Setting setting) const { return values_.at(static_cast<std::size_t>(setting)).origin; }
std::size_t Config::bytes(Setting setting) const { return static_cast<std::size_t>(number(setting)); }
std::int64_t Config::number(Setting setting) const { return values_.at(static_cast<std::size_t>(setting)).number; }
Nanoseconds Config::duration(Setting setting) const { return Nanoseconds(number(setting)); }

Result<std::size_t> parse_bytes(std::string_view text) {
  static constexpr std::array<Suffix, 14> kSuffixes{{{"", 1},
                                                     {"B", 1},
                                                     {"K", 0x1p10},
                                                     {"k", 0x1p10},
                                                     {"KiB", 0x1p10},
                                                     {"M", 0x1p20},
                                                     {"m", 0x1p20},
                                                     {"MiB", 0x1p20},
                                                     {"G", 0x1p30},
                                                     {"g", 0x1p30},
                                                     {"GiB", 0x1p30},
                                                     {"T", 0x1p40},
                                                     {"t", 0x1p40},
                                                     {"TiB", 0x1p40}}};
  const auto value = scaled(text, kSuffixes);
  if (!value) return bad("a size", text, "a number with K, M, G or T (binary)");
  return static_cast<std::size_t>(*value);
}

std::string format_bytes(std::size_t bytes) {
  constexpr std::string_view kUnits = "KMGT";
  std::string unit;
  for (const char one : kUnits) {
    if (bytes < 1024 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = one;
  }
  return std::to_string(bytes) + unit;
}

Result<Nanoseconds> parse_duration(std::string_view text) {
  static constexpr std::array<Suffix, 5> kSuffixes{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}}};
  const auto value = scaled(text, kSuffixes);
  if (!value) return bad("a duration", text, "a number with ns, us, ms, s or min");
  return Nanoseconds(static_cast<std::int64_t>(*value));
}

Result<LaunchEnvironment> read_launch_environment() {
  LaunchEnvironment launch;
  for (const Launcher& one : kLaunchers) {
    const bool has_rank = !environment_variable(one.rank).empty();
    const bool has_ranks = !environment_variable(one.ranks).empty();
    // Slurm's and MPI's are set in batch scripts too, which are no ranks.
    if (has_rank && !has_ranks && (one.source == kSluice || one.source == kTorchrun))
      log(LogLevel::warn, -1,
          std::string(one.rank) + " is set, but " + one.ranks +
              " is not: it is ignored; set both, or neither to run alone");
    if (!has_rank || !has_ranks) continue;
    launch.source = one.source;
    SLUICE_TRY_ASSIGN(launch.rank, integer_variable(one.rank, -1));
    SLUICE_TRY_ASSIGN(launch.ranks, integer_variable(one.ranks, -1));
    SLUICE_TRY_ASSIGN(launch.local_rank, integer_variable(one.local_rank, -1));
    SLUICE_TRY_ASSIGN(launch.local_ranks, integer_variable(one.local_ranks, -1));
    if (*one.job != '\0') launch.job = environment_variable(one.job);
    // Steps of one job may run at the same time.
    if (const std::string step = environment_variable("SLURM_STEP_ID"); one.source == kSlurm && !step.empty())
      launch.job += "." + step;
    if (launch.ranks < 1 || launch.rank >= launch.ranks)
      return bad(std::string("environment variable ") + one.rank, std::to_string(launch.rank),
                 std::string("below ") + one.ranks + " = " + std::to_string(launch.ranks));
    break;
  }
  launch.master_address = environment_variable("MASTER_ADDR");
  SLUICE_TRY_ASSIGN(launch.master_port, integer_variable("MASTER_PORT", -1));
  launch.unique_id = environment_variable("SLUICE_UNIQUE_ID");
  launch.rendezvous_file = environment_variable("SLUICE_RENDEZVOUS_FILE");
  launch.secret = environment_variable("SLUICE_SECRET");
  return launch;
}

std::string environment_variable(const char* variable) {
  const char* value = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe): before threads start
  return value == nullptr ? std::string() : std::string(value);
}

}  // namespace sluice
